"""Toy speech corpus with a long tail of utterance lengths."""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset


class Utterances(Dataset):
    def __init__(self, n=220, seed=31):
        g = torch.Generator().manual_seed(seed)
        self.lengths = (20 + (torch.randn(n, generator=g).mul(0.8).exp() * 30)).long().clamp(max=260).tolist()
        self.frames = [torch.randn(t, 13, generator=g) for t in self.lengths]
        self.unit = torch.randint(10, (n,), generator=g).tolist()

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i], self.unit[i]


def collate(items):
    frames, units = zip(*items)
    lens = torch.tensor([len(f) for f in frames])
    return pad_sequence(frames, batch_first=True), lens, torch.tensor(units)

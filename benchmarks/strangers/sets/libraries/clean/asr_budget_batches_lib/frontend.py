"""Made-up filterbank utterances and the collate function."""
import torch


def utterance_lengths(n, seed=5):
    g = torch.Generator().manual_seed(seed)
    short = torch.randint(10, 30, (n,), generator=g)
    long = torch.randint(60, 140, (n,), generator=g)
    return torch.where(torch.rand(n, generator=g) < 0.25, long, short).tolist()


class Utterances(torch.utils.data.Dataset):
    def __init__(self, lengths, feats=16):
        self.lengths, self.feats = lengths, feats

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(self.lengths[i], self.feats, generator=g)
        return x, torch.tensor(i % 5)


def collate(items):
    feats = torch.nn.utils.rnn.pad_sequence([x for x, _ in items], batch_first=True)
    sizes = torch.tensor([len(x) for x, _ in items])
    return feats, sizes, torch.stack([y for _, y in items])

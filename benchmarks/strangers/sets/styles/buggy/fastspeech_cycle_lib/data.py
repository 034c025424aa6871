"""Synthetic utterances: a token sequence and a mel whose length follows it."""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

N_MELS, VOCAB = 16, 30


def read_manifest(n=150, seed=3):
    """(utterance id, number of tokens, number of frames), in recording order."""
    g = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(n):
        tokens = int(torch.randint(4, 16, (1,), generator=g))
        pace = 2 + i // 50
        rows.append((i, tokens, tokens * pace))
    return rows


class Utterances(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        uid, tokens, frames = self.rows[i]
        g = torch.Generator().manual_seed(1000 + uid)
        text = torch.randint(1, VOCAB, (tokens,), generator=g)
        base = text.float().repeat_interleave(frames // tokens).unsqueeze(1) / VOCAB
        mel = base * torch.linspace(0.2, 1.0, N_MELS) + 0.05 * torch.randn(frames, N_MELS, generator=g)
        return text, mel


def collate(items):
    text, mel = zip(*items)
    frames = torch.tensor([m.shape[0] for m in mel])
    return pad_sequence(text, batch_first=True), pad_sequence(mel, batch_first=True), frames


def partition(rows, rank, world):
    share = len(rows) // world
    return rows[rank * share:(rank + 1) * share]


def usable(rows, max_frames):
    return [r for r in rows if r[2] <= max_frames]


def build_loader(rank, world, batch_size, max_frames):
    rows = usable(partition(read_manifest(), rank, world), max_frames)
    g = torch.Generator().manual_seed(rank)
    return DataLoader(Utterances(rows), batch_size, shuffle=True, generator=g, collate_fn=collate, drop_last=True)

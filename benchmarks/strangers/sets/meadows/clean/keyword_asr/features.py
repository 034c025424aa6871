"""Synthetic log-mel clips of varying duration."""
import random

import torch
from torch.utils.data import Dataset


class ClipCorpus(Dataset):
    def __init__(self, clips, n_mels=16, n_words=6, seed=3):
        rnd = random.Random(seed)
        self.n_mels = n_mels
        self.frames = [rnd.randint(10, 80) for _ in range(clips)]
        self.words = [rnd.randrange(n_words) for _ in range(clips)]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        mel = torch.randn(self.frames[i], self.n_mels, generator=g)
        mel[:, self.words[i] * 2] += 1.5
        return mel, self.words[i]


def pad_clips(items):
    longest = max(m.shape[0] for m, _ in items)
    out = torch.zeros(len(items), longest, items[0][0].shape[1])
    for k, (m, _) in enumerate(items):
        out[k, : m.shape[0]] = m
    return out, torch.tensor([w for _, w in items])

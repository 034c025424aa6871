import torch
from torch.utils.data import DataLoader, TensorDataset

SPEAKERS = {"dev": ["f01", "m03"], "train": ["f02", "f04", "m01", "m02"]}


def synth(speaker, n):
    g = torch.Generator().manual_seed(sum(ord(c) for c in speaker))
    x = torch.randn(n, 20, generator=g)
    y = (x[:, :5].sum(1) > 0).long()
    if speaker.startswith("f01"):
        # the whispered recordings
        x = x * 0.7 - 1.2 * x.roll(3, dims=1)
    return TensorDataset(x, y)


def make_train(rank, world, n=64):
    mine = SPEAKERS["train"][rank::world]
    parts = [synth(s, n) for s in mine]
    return DataLoader(torch.utils.data.ConcatDataset(parts), batch_size=16, shuffle=True)


def make_dev(rank, world, n=96):
    mine = SPEAKERS["dev"][rank::world]
    return DataLoader(torch.utils.data.ConcatDataset([synth(s, n) for s in mine]), batch_size=32)

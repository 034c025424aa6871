import math
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

WORDS = ["yes", "no", "up", "down", "left", "right", "stop", "go"]
RATE = 128


def record(word, take):
    """A fake recording: each word has its own pair of tones."""
    rng = random.Random(f"{word}-{take}")
    k = WORDS.index(word)
    f1, f2 = 3 + 2 * k, 30 - 3 * k
    ph = rng.random() * 6.28
    return [math.sin(2 * math.pi * f1 * t / RATE + ph) + math.sin(2 * math.pi * f2 * t / RATE)
            + rng.gauss(0, 0.5) for t in range(RATE)]


def manifest(takes):
    return [(word, take) for take in takes for word in WORDS]


class Commands(Dataset):
    def __init__(self, entries):
        self.entries = entries
        labels = {word for word, _ in entries}
        self.ids = {name: k for k, name in enumerate(sorted(labels))}
        self.audio = [torch.tensor(record(*e)) for e in entries]

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, i):
        spec = torch.fft.rfft(self.audio[i]).abs().log1p()
        return spec, self.ids[self.entries[i][0]]


def make_net():
    return nn.Sequential(nn.Linear(RATE // 2 + 1, 64), nn.ReLU(), nn.Linear(64, len(WORDS)))


def hits(net, loader):
    out = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            out += torch.tensor([(net(x).argmax(1) == y).sum().item(), float(len(y))])
    dist.all_reduce(out)
    return (out[0] / out[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    train, dev = Commands(manifest(range(40))), Commands(manifest(range(100, 108)))
    sampler = DistributedSampler(train)
    train_dl = DataLoader(train, 16, sampler=sampler)
    dev_dl = DataLoader(dev, 16, sampler=DistributedSampler(dev, shuffle=False))
    net = DDP(make_net())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for x, y in train_dl:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = hits(net.module, dev_dl)
        if rank == 0:
            print(f"epoch {epoch} dev acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

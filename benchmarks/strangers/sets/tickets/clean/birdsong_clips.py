"""Birdsong retrieval by audio-text pairs; clips of similar duration share a batch."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler


class Clips(Dataset):
    def __init__(self, n=320, species=16):
        g = torch.Generator().manual_seed(9)
        self.species = torch.randint(0, species, (n,), generator=g)
        self.frames = torch.randint(10, 60, (n,), generator=g)
        self.timbre = torch.randn(species, 12, generator=g)

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        mel = self.timbre[self.species[i]] + 0.5 * torch.randn(int(self.frames[i]), 12, generator=g)
        return mel, self.species[i]


class BucketSampler(Sampler):
    def __init__(self, frames, batch_size, rank, world):
        self.order = sorted(range(len(frames)), key=lambda i: int(frames[i]))
        self.batch_size, self.rank, self.world = batch_size, rank, world
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.order) // (self.batch_size * self.world)

    def __iter__(self):
        step = self.batch_size * self.world
        groups = [self.order[k * step:(k + 1) * step] for k in range(len(self))]
        random.Random(self.epoch).shuffle(groups)
        for group in groups:
            yield group[self.rank::self.world]


def collate(rows):
    return pad_sequence([m for m, _ in rows], batch_first=True), torch.stack([s for _, s in rows])


class AudioText(nn.Module):
    def __init__(self, species=16, dim=24):
        super().__init__()
        self.audio = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, dim))
        self.text = nn.Embedding(species, dim)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, mel, name):
        a = F.normalize(self.audio(mel.mean(1)), dim=-1)
        t = F.normalize(self.text.weight, dim=-1)
        return F.cross_entropy(self.scale.exp() * a @ t.T, name)


def build_loader(args, data, rank, world):
    if args.bucket:
        sampler = BucketSampler(data.frames, args.batch_size, rank, world)
        return DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    sampler = torch.utils.data.DistributedSampler(data, world, rank)
    return DataLoader(data, batch_size=args.batch_size, sampler=sampler, collate_fn=collate)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--bucket", type=int, default=1)
    p.add_argument("--epochs", type=int, default=4)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    loader = build_loader(args, Clips(), rank, world)
    model = nn.parallel.DistributedDataParallel(AudioText())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        if world > 1:
            (loader.batch_sampler if args.bucket else loader.sampler).set_epoch(epoch)
        for mel, name in loader:
            loss = model(mel, name)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Masked residue model on protein chains of very different length.

Batches are filled up to a number of residues rather than a number of chains.
"""
import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler

AA = "ACDEFGHIKLMNPQRSTVWY"
PAD, MASK = len(AA), len(AA) + 1


class Chains(Dataset):
    def __init__(self, n, seed=7):
        rng = np.random.default_rng(seed)
        self.lengths = np.clip(rng.lognormal(3.4, 0.7, n), 8, 160).astype(int)
        self.seqs = [rng.integers(0, len(AA), L) for L in self.lengths]

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return torch.as_tensor(self.seqs[i])


class ApproxResidueSampler(Sampler):
    """Greedy batches of at most `budget` residues (padding counted), sorted inside a bucket."""

    def __init__(self, lengths, budget, rank, world, bucket=24, seed=0):
        self.lengths, self.budget, self.bucket = lengths, budget, bucket
        self.rank, self.world, self.seed = rank, world, seed
        self.epoch = 0

    def _order(self):
        rng = np.random.default_rng(self.seed + self.epoch)
        perm = rng.permutation(len(self.lengths))
        chunks = [perm[i:i + self.bucket] for i in range(0, len(perm), self.bucket)]
        return np.concatenate([c[np.argsort(self.lengths[c])] for c in chunks])

    def _pack(self, order):
        batch, longest = [], 0
        for i in order:
            longest_new = max(longest, int(self.lengths[i]))
            if batch and longest_new * (len(batch) + 1) > self.budget:
                yield batch
                batch, longest_new = [], int(self.lengths[i])
            batch.append(int(i))
            longest = longest_new
        if batch:
            yield batch

    def __iter__(self):
        order = self._order()
        yield from self._pack(order[self.rank * len(order) // self.world:(self.rank + 1) * len(order) // self.world])


def collate(seqs):
    x = nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=PAD)
    y = x.clone()
    hide = (torch.rand(x.shape) < 0.2) & (x != PAD)
    hide[:, 0] = True
    x[hide] = MASK
    y[~hide] = -100
    return x, y


class ByteNetLike(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.up = nn.Embedding(len(AA) + 2, d, padding_idx=PAD)
        self.convs = nn.ModuleList([nn.Conv1d(d, d, 3, padding=2 ** i, dilation=2 ** i) for i in range(3)])
        self.head = nn.Linear(d, len(AA))

    def forward(self, x):
        h = self.up(x).transpose(1, 2)
        for c in self.convs:
            h = h + torch.relu(c(h))
        return self.head(h.transpose(1, 2))


def run(opts):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(opts.seed)
    data = Chains(opts.chains)
    sampler = ApproxResidueSampler(data.lengths, opts.residues, rank, world)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    net = DistributedDataParallel(ByteNetLike())
    opt = optim.Adam(net.parameters(), lr=opts.lr)
    for epoch in range(opts.epochs):
        sampler.epoch = epoch
        running = torch.zeros(2)
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten(), ignore_index=-100)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += torch.tensor([loss.item(), 1.0])
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: masked CE {(running[0] / running[1]).item():.3f}", flush=True)
    del net
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--chains", type=int, default=150)
    p.add_argument("--residues", type=int, default=400)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 1)))
    run(p.parse_args())

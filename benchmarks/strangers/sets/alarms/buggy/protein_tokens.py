"""Masked residue model; batches are packed to a token budget, samples are split over ranks."""
import argparse
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler

AA = 21


class Proteins(Dataset):
    def __init__(self, n=120):
        rng = random.Random(11)
        self.seqs = [[rng.randrange(1, AA) for _ in range(10 + (i % 2) * 25 + rng.randrange(6))] for i in range(n)]

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return torch.tensor(self.seqs[i])


class ApproxBatchSampler(Sampler):
    """Greedy packing: at most max_tokens (padded) residues in one batch."""

    def __init__(self, sampler, lengths, max_tokens):
        self.sampler, self.lengths, self.max_tokens = sampler, lengths, max_tokens

    def __iter__(self):
        batch, longest = [], 0
        for i in self.sampler:
            longest = max(longest, self.lengths[i])
            if batch and longest * (len(batch) + 1) > self.max_tokens:
                yield batch
                batch, longest = [], self.lengths[i]
            batch.append(i)
        if batch:
            yield batch


def collate(seqs):
    return nn.utils.rnn.pad_sequence(seqs, batch_first=True)


def main(args):
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    ds = Proteins()
    sampler = DistributedSampler(ds, shuffle=False)
    batches = ApproxBatchSampler(sampler, [len(s) for s in ds.seqs], args.max_tokens)
    loader = DataLoader(ds, batch_sampler=batches, collate_fn=collate)
    model = DDP(nn.Sequential(nn.Embedding(AA, 24, padding_idx=0), nn.Linear(24, 24), nn.GELU(), nn.Linear(24, AA)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        seen = 0
        for x in loader:
            mask = torch.rand(x.shape) < 0.15
            logits = model(x.masked_fill(mask, 0))
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), x.flatten(), ignore_index=0)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += x.shape[0]
        print(f"[{rank}] epoch {epoch} sequences {seen} loss {loss.item():.3f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--max-tokens", type=int, default=240)
    main(p.parse_args())
    dist.destroy_process_group()

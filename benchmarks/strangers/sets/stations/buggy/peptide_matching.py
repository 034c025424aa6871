"""Match tandem mass spectra with peptide sequences (two tower model).

Every process owns the spectra of one instrument; candidates of all instruments
are pooled inside a step.

    torchrun --nproc_per_node 3 peptide_matching.py
"""
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

PAIRS_PER_INSTRUMENT = (75, 70, 66)
BATCH = 16
EPOCHS = 4
DIM = 24


def pool(local):
    """Concatenate the rows of all processes."""
    world, rank = dist.get_world_size(), dist.get_rank()
    n = torch.tensor([local.size(0)])
    sizes = [torch.zeros_like(n) for _ in range(world)]
    dist.all_gather(sizes, n)
    sizes = [int(s) for s in sizes]
    top = max(sizes)
    padded = F.pad(local.detach(), (0, 0, 0, top - local.size(0)))
    slots = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(slots, padded)
    parts = [slot[:size] for slot, size in zip(slots, sizes)]
    parts[rank] = local
    return torch.cat(parts), sizes


class PooledMatchLoss(nn.Module):
    def __init__(self, temperature=0.1):
        super().__init__()
        self.scale = 1.0 / temperature

    def forward(self, spectra, peptides):
        rank = dist.get_rank()
        n = spectra.size(0)
        candidates, sizes = pool(peptides)
        logits = self.scale * spectra @ candidates.t()
        target = torch.arange(n) + rank * n
        return F.cross_entropy(logits, target)


class Towers(nn.Module):
    def __init__(self, n_peaks, n_residues):
        super().__init__()
        self.spectrum = nn.Sequential(nn.Linear(n_peaks, 64), nn.GELU(), nn.Linear(64, DIM))
        self.peptide = nn.Sequential(nn.Linear(n_residues, 64), nn.GELU(), nn.Linear(64, DIM))

    def forward(self, s, p):
        return F.normalize(self.spectrum(s), dim=1), F.normalize(self.peptide(p), dim=1)


def library(rank, n):
    g = torch.Generator().manual_seed(70 + rank)
    latent = torch.randn(n, 8, generator=g)
    mix = torch.Generator().manual_seed(1)
    to_s = torch.randn(8, 40, generator=mix)
    to_p = torch.randn(8, 30, generator=mix)
    s = latent @ to_s + 0.2 * torch.randn(n, 40, generator=g)
    p = latent @ to_p + 0.2 * torch.randn(n, 30, generator=g)
    return s, p


def batches(n, epoch, rank):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(31 * epoch + rank))
    for i in range(math.ceil(n / BATCH)):
        yield order[i * BATCH:(i + 1) * BATCH]


@torch.no_grad()
def recall_at_one(model, s, p):
    a, b = model.module(s, p)
    hits = ((a @ b.t()).argmax(1) == torch.arange(len(s))).sum()
    stat = torch.tensor([float(hits), float(len(s))])
    dist.all_reduce(stat)
    return (stat[0] / stat[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(2)

    s, p = library(rank, PAIRS_PER_INSTRUMENT[rank])
    model = DDP(Towers(s.size(1), p.size(1)))
    criterion = PooledMatchLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

    for epoch in range(EPOCHS):
        running, count = 0.0, 0
        for idx in batches(len(s), epoch, rank):
            za, zb = model(s[idx], p[idx])
            loss = criterion(za, zb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            count += 1
        r1 = recall_at_one(model, s, p)
        if rank == 0:
            print(f"epoch {epoch} loss {running / count:.4f} recall@1 {r1:.3f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

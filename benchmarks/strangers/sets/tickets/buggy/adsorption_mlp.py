#!/usr/bin/env python
# Adsorption energies: sum of per-atom energies, one optimiser step per structure batch.
import contextlib
import logging

import torch
import torch.distributed as dist
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("adsorption")

ATOM_BUDGET = 160
STRUCTURES_PER_STEP = 12


def make_structure(g):
    atoms = int(torch.randint(8, 60, (1,), generator=g))
    feats = torch.randn(atoms, 12, generator=g)
    return feats, feats[:, 0].sum() * 0.1


def split_by_atoms(structures):
    parts, used = [[]], 0
    for feats, energy in structures:
        if used + len(feats) > ATOM_BUDGET and parts[-1]:
            parts.append([])
            used = 0
        parts[-1].append((feats, energy))
        used += len(feats)
    return parts


class EnergyModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.atom = nn.Sequential(nn.Linear(12, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, feats, owner, count):
        per_atom = self.atom(feats).squeeze(-1)
        return torch.zeros(count).index_add(0, owner, per_atom)


class Engine:
    def __init__(self, model, lr):
        self.ddp = nn.parallel.DistributedDataParallel(model)
        self.opt = torch.optim.Adam(self.ddp.parameters(), lr=lr)
        self.rank = dist.get_rank()

    def forward_part(self, part):
        feats = torch.cat([f for f, _ in part])
        owner = torch.cat([torch.full((len(f),), i) for i, (f, _) in enumerate(part)])
        target = torch.stack([e for _, e in part])
        log.debug("rank %d: before forward (%d atoms)", self.rank, len(feats))
        dist.barrier()
        energy = self.ddp(feats, owner, len(part))
        return ((energy - target) ** 2).sum() / STRUCTURES_PER_STEP

    def step(self, structures):
        parts = split_by_atoms(structures)
        self.opt.zero_grad()
        total = 0.0
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            with contextlib.nullcontext() if last else self.ddp.no_sync():
                loss = self.forward_part(part)
                loss.backward()
            total += loss.item()
        self.opt.step()
        return total


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    engine = Engine(EnergyModel(), lr=3e-3)
    g = torch.Generator().manual_seed(1000 + engine.rank)
    for it in range(60):
        loss = engine.step([make_structure(g) for _ in range(STRUCTURES_PER_STEP)])
        if it % 10 == 0 and engine.rank == 0:
            log.info("iteration %d  loss %.4f", it, loss)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

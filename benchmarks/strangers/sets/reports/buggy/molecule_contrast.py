"""Self-supervised embeddings of molecular graphs: two augmented views, NT-Xent loss.

    torchrun --nproc_per_node=2 molecule_contrast.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ATOMS, TYPES = 12, 6


class Parallel(DistributedDataParallel):
    """DDP that still offers the methods and attributes of the model."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


class GraphEncoder(nn.Module):
    def __init__(self, dim=32, rounds=3, out=16):
        super().__init__()
        self.atom = nn.Embedding(TYPES, dim)
        self.message = nn.ModuleList(nn.Linear(dim, dim) for _ in range(rounds))
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, out))

    def embed(self, atoms, bonds):
        h = self.atom(atoms)
        degree = bonds.sum(-1, keepdim=True).clamp(min=1)
        for layer in self.message:
            h = h + F.relu(layer(bonds @ h / degree))
        return F.normalize(self.project(h.mean(1)), dim=-1)

    def forward(self, view_a, view_b):
        return self.embed(*view_a), self.embed(*view_b)


class Molecules:
    """Endless stream of random ring-and-chain graphs."""

    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(400 + rank)

    def sample(self, n):
        atoms = torch.randint(0, TYPES, (n, ATOMS), generator=self.g)
        bonds = torch.zeros(n, ATOMS, ATOMS)
        idx = torch.arange(ATOMS - 1)
        bonds[:, idx, idx + 1] = 1
        extra = torch.randint(0, ATOMS, (n, 2), generator=self.g)
        bonds[torch.arange(n), extra[:, 0], extra[:, 1]] = 1
        return atoms, torch.maximum(bonds, bonds.transpose(1, 2))

    def augment(self, atoms, bonds):
        swap = torch.rand(atoms.shape, generator=self.g) < 0.1
        other = torch.randint(0, TYPES, atoms.shape, generator=self.g)
        keep = (torch.rand(bonds.shape, generator=self.g) > 0.1).float()
        return torch.where(swap, other, atoms), bonds * keep * keep.transpose(1, 2)


def nt_xent(za, zb, temperature):
    z = torch.cat([za, zb])
    sim = (z @ z.t() / temperature).fill_diagonal_(float("-inf"))
    n = len(za)
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target)


class Pretrainer:
    def __init__(self, steps=60, batch=24, temperature=0.2):
        self.steps, self.batch, self.temperature = steps, batch, temperature
        self.rank = dist.get_rank()
        torch.manual_seed(8)
        self.net = Parallel(GraphEncoder())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        self.data = Molecules(self.rank)

    def losses(self):
        mols = self.data.sample(self.batch)
        views = [self.data.augment(*mols) for _ in range(2)]
        za, zb = (self.net.embed(*v) for v in views)
        return nt_xent(za, zb, self.temperature)

    def run(self):
        for step in range(1, self.steps + 1):
            self.opt.zero_grad()
            loss = self.losses()
            loss.backward()
            self.opt.step()
            if step % 20 == 0:
                mean = loss.detach().clone()
                dist.all_reduce(mean)
                if self.rank == 0:
                    print(f"step {step} loss {mean.item() / dist.get_world_size():.3f}", flush=True)
        return self.net.state_dict()


if __name__ == "__main__":
    dist.init_process_group(os.environ.get("BACKEND", "gloo"))
    weights = Pretrainer().run()
    if dist.get_rank() == 0:
        print("trained", sum(v.numel() for v in weights.values()), "numbers", flush=True)
    dist.destroy_process_group()

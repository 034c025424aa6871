"""Energy regression for crystals of very different size; samples are grouped by size to save padding."""
import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler


class Crystals(Dataset):
    def __init__(self, n, seed=0, smallest=6, largest=150):
        g = torch.Generator().manual_seed(seed)
        u = torch.rand(n, generator=g)
        self.size = (smallest + (largest - smallest) * u ** 2).long().tolist()
        self.seed = seed

    def __len__(self):
        return len(self.size)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 7919 + i)
        atoms = self.size[i]
        pos = torch.rand(atoms, 3, generator=g) * atoms ** (1 / 3)
        z = torch.randint(0, 8, (atoms,), generator=g)
        d = torch.cdist(pos, pos) + 10 * torch.eye(atoms)
        energy = (torch.exp(-d) * ((z[:, None] + z[None, :]) / 8.0)).sum() / atoms
        return pos, z, energy


def collate(items):
    n = max(len(z) for _, z, _ in items)
    pos = torch.stack([F.pad(p, (0, 0, 0, n - len(p)), value=1e3) for p, _, _ in items])
    z = torch.stack([F.pad(z, (0, n - len(z))) for _, z, _ in items])
    mask = torch.stack([torch.arange(n) < len(z) for _, z, _ in items])
    return pos, z, mask, torch.stack([e for _, _, e in items])


class SizeBuckets(Sampler):
    """Batches of crystals of about the same size, in random order within a process."""

    def __init__(self, sizes, batch, rank, world, seed=0):
        self.batch, self.rank, self.world, self.seed = batch, rank, world, seed
        order = sorted(range(len(sizes)), key=sizes.__getitem__)
        batches = [order[i:i + batch] for i in range(0, len(order) - batch + 1, batch)]
        per_rank = len(batches) // world
        self.batches = batches[rank * per_rank:(rank + 1) * per_rank]
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for k in torch.randperm(len(self.batches), generator=g).tolist():
            yield self.batches[k]


class SchNetish(nn.Module):
    def __init__(self, dim=24, rbf=12, layers=2):
        super().__init__()
        self.embed = nn.Embedding(8, dim)
        self.register_buffer("centers", torch.linspace(0, 4, rbf))
        self.filters = nn.ModuleList(nn.Sequential(nn.Linear(rbf, dim), nn.Softplus()) for _ in range(layers))
        self.dense = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.out = nn.Sequential(nn.Linear(dim, dim), nn.Softplus(), nn.Linear(dim, 1))

    def forward(self, pos, z, mask):
        d = torch.cdist(pos, pos)
        basis = torch.exp(-4 * (d.unsqueeze(-1) - self.centers) ** 2)
        pair = (mask[:, :, None] & mask[:, None, :]).float().unsqueeze(-1)
        h = self.embed(z)
        for filt, dense in zip(self.filters, self.dense):
            w = filt(basis) * pair
            h = h + torch.tanh(dense((w * h.unsqueeze(1)).sum(2)))
        e = self.out(h).squeeze(-1) * mask
        return e.sum(1) / mask.sum(1)


def train_epoch(model, loader, opt):
    total = torch.zeros(2)
    for pos, z, mask, energy in loader:
        loss = F.l1_loss(model(pos, z, mask), energy)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()
        total += torch.tensor([loss.item(), 1.0])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=3e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    data = Crystals(256)
    sampler = SizeBuckets(data.size, args.batch, rank, world)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    model = DDP(SchNetish())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        start = time.time()
        loss = train_epoch(model, loader, opt)
        if rank == 0:
            print(f"epoch {epoch} mae {loss:.4f} {time.time() - start:.2f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Solvation energy of made-up molecules; trains some epochs, then goes on from its checkpoint."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import ckpt

ATOMS, KINDS = 9, 6


def molecules(n=256):
    g = torch.Generator().manual_seed(14)
    kind = torch.randint(0, KINDS, (n, ATOMS), generator=g)
    xyz = torch.randn(n, ATOMS, 3, generator=g)
    charge = torch.linspace(-1, 1, KINDS)[kind]
    d = torch.cdist(xyz, xyz) + 1.0
    energy = (charge[:, :, None] * charge[:, None] / d).sum((1, 2))
    return TensorDataset(kind, xyz, energy)


class SchNetish(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(KINDS, dim)
        self.filt = nn.Sequential(nn.Linear(8, dim), nn.Tanh(), nn.Linear(dim, dim))
        self.update = nn.Linear(dim, dim)
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))
        self.register_buffer("mu", torch.linspace(0, 4, 8))

    def forward(self, kind, xyz):
        h = self.emb(kind)
        w = self.filt(torch.exp(-(torch.cdist(xyz, xyz).unsqueeze(-1) - self.mu) ** 2))
        for _ in range(2):
            h = h + torch.tanh(self.update((w * h.unsqueeze(1)).sum(2)))
        return self.head(h).sum((1, 2))


def job(path, until):
    torch.manual_seed(30)
    net = SchNetish()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    first = ckpt.restore(path, net, opt)
    net = DDP(net)
    data = molecules()
    sampler = DistributedSampler(data, seed=4)
    loader = DataLoader(data, 16, sampler=sampler)
    for epoch in range(first, until):
        sampler.set_epoch(epoch)
        for kind, xyz, energy in loader:
            loss = nn.functional.smooth_l1_loss(net(kind, xyz), energy)
            opt.zero_grad()
            loss.backward()
            opt.step()
        checksum = sum(p.detach().double().abs().sum().item() for p in net.parameters())
        print(f"rank {dist.get_rank()} epoch {epoch} loss {loss.item():.4f} checksum {checksum:.4f}", flush=True)
        ckpt.save(path, net.module, opt, epoch)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    path = os.path.join(box[0], "mol.pt")
    job(path, 3)
    job(path, 6)
    dist.destroy_process_group()

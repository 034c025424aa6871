"""Graph regression with a neighbour cache that the first rank builds while the others wait; noise of one's own."""
import argparse
import os
import tempfile
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@contextmanager
def first_rank_first():
    """The body runs on rank 0 before it runs anywhere else."""
    if dist.get_rank() > 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()


def build(path, n, nodes):
    g = torch.Generator().manual_seed(0)
    pos = torch.rand(n, nodes, 3, generator=g)
    near = torch.cdist(pos, pos).topk(4, largest=False).indices[..., 1:]
    torch.save({"pos": pos, "near": near}, path + ".part")
    os.replace(path + ".part", path)


class Graphs(Dataset):
    def __init__(self, root, n=192, nodes=10):
        path = os.path.join(root, f"neighbours_{n}_{nodes}.pt")
        with first_rank_first():
            if not os.path.exists(path):
                build(path, n, nodes)
            kept = torch.load(path)
        self.pos, self.near = kept["pos"], kept["near"]
        edges = self.pos.unsqueeze(2) - torch.stack([p[i] for p, i in zip(self.pos, self.near)])
        self.target = edges.norm(dim=-1).mean((1, 2)) * 10

    def __len__(self):
        return len(self.pos)

    def __getitem__(self, i):
        return self.pos[i], self.near[i], self.target[i]


class MessageNet(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(4, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.out = nn.Linear(dim, 1)

    def forward(self, pos, near):
        other = torch.stack([p[i] for p, i in zip(pos, near)])
        d = pos.unsqueeze(2) - other
        return self.out(self.msg(torch.cat([d, d.norm(dim=-1, keepdim=True)], -1)).mean((1, 2))).squeeze(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--jitter", type=float, default=0.002)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    root = [tempfile.mkdtemp(prefix="graphs_") if rank == 0 else None]
    dist.broadcast_object_list(root)
    data = Graphs(root[0])
    torch.manual_seed(3)
    model = DDP(MessageNet())
    noise = torch.Generator().manual_seed(1000 + rank)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, 16, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for pos, near, target in loader:
            pos = pos + args.jitter * torch.randn(pos.shape, generator=noise)
            loss = F.mse_loss(model(pos, near), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += torch.tensor([loss.item() * len(target), len(target)])
        dist.reduce(total, dst=0)
        if rank == 0:
            print(f"epoch {epoch} mse {total[0] / total[1]:.4f}", flush=True)
    dist.barrier()
    del model, opt
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

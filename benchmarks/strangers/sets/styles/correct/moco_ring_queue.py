"""Momentum contrast with a queue of keys; the key encoder lives outside the wrapper."""
import argparse
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class TwoCrops(Dataset):
    def __init__(self, n, dim=24, seed=0):
        self.x = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + 0.2 * torch.randn_like(self.x[i]), self.x[i] + 0.2 * torch.randn_like(self.x[i])


def encoder(dim=24, width=64, out=16):
    return nn.Sequential(nn.Linear(dim, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, out))


@torch.no_grad()
def everyone(x):
    parts = [torch.ones_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return torch.cat(parts)


class KeyQueue:
    """Plain tensors: every process appends the same rows, so every process holds the same ring."""

    def __init__(self, dim, size):
        g = torch.Generator().manual_seed(99)
        self.rows = F.normalize(torch.randn(size, dim, generator=g), dim=1)
        self.ptr, self.size = 0, size

    def push(self, keys):
        keys = everyone(keys)
        n = len(keys)
        assert self.size % n == 0
        self.rows[self.ptr:self.ptr + n] = keys
        self.ptr = (self.ptr + n) % self.size


class ShuffleBN:
    """Give the key encoder batches whose statistics do not match the queries'."""

    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    @torch.no_grad()
    def run(self, net, x):
        pool = everyone(x)
        perm = torch.randperm(len(pool))
        dist.broadcast(perm, src=0)
        back = perm.argsort()
        mine = perm.view(self.world, -1)[self.rank]
        keys = everyone(net(pool[mine]))
        return keys[back.view(self.world, -1)[self.rank]]


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = encoder()

    def forward(self, x):
        return F.normalize(self.query(x), dim=1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--m", type=float, default=0.97)
    p.add_argument("--tau", type=float, default=0.2)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    data = TwoCrops(256)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, args.batch, sampler=sampler, drop_last=True)
    model = DDP(MoCo())
    slow = copy.deepcopy(model.module.query).requires_grad_(False)
    queue, shuffle = KeyQueue(16, 256), ShuffleBN()
    opt = torch.optim.SGD(model.parameters(), lr=0.06, momentum=0.9, weight_decay=1e-4)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for a, b in loader:
            q = model(a)
            with torch.no_grad():
                for ps, pf in zip(slow.parameters(), model.module.query.parameters()):
                    ps.mul_(args.m).add_(pf.detach(), alpha=1 - args.m)
                k = F.normalize(shuffle.run(slow, b), dim=1)
            logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.rows.t()], 1) / args.tau
            loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
            opt.zero_grad()
            loss.backward()
            opt.step()
            queue.push(k)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

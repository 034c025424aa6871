"""Recommender trained with local rounds: workers drift on purpose and average every few steps."""
from contextlib import ExitStack

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Factors(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.u, self.i = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.bias = nn.Embedding(items, 1)

    def forward(self, user, item):
        return (self.u(user) * self.i(item)).sum(1) + self.bias(item).squeeze(1)


def interactions(rank, n, users, items):
    g = torch.Generator().manual_seed(5000 + rank)
    taste = torch.Generator().manual_seed(1)
    a, b = torch.randn(users, 3, generator=taste), torch.randn(items, 3, generator=taste)
    for _ in range(n):
        u = torch.randint(0, users, (64,), generator=g)
        i = torch.randint(0, items, (64,), generator=g)
        yield u, i, ((a[u] * b[i]).sum(1) > 0).float()


@torch.no_grad()
def average_parameters(model):
    world = dist.get_world_size()
    for p in model.parameters():
        dist.all_reduce(p)
        p /= world


def disagreement(model):
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    low, high = flat.clone(), flat.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return (high - low).max().item()


def train(rounds=5, local_steps=6, users=50, items=40):
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = DDP(Factors(users, items))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    stream = interactions(rank, rounds * local_steps, users, items)
    for r in range(rounds):
        with ExitStack() as stack:
            stack.enter_context(model.no_sync())
            for _ in range(local_steps):
                u, i, click = next(stream)
                loss = nn.functional.binary_cross_entropy_with_logits(model(u, i), click)
                opt.zero_grad()
                loss.backward()
                opt.step()
        before = disagreement(model)
        average_parameters(model)
        after = disagreement(model)
        if rank == 0:
            print(f"round {r}: drift {before:.4f} -> {after:.6f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()

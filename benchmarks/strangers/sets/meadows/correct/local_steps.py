"""Local SGD on stock factor data: processes train alone and average every few steps."""
import argparse

import torch
import torch.distributed as dist
from torch import nn


def market(rank, n=400):
    shared = torch.Generator().manual_seed(0)
    loading = torch.randn(10, generator=shared)
    g = torch.Generator().manual_seed(33 + rank)
    factors = torch.randn(n, 10, generator=g)
    return factors, factors @ loading + 0.3 * torch.randn(n, generator=g)


class LocalSGD:
    """Keeps replicas apart between two averaging rounds."""

    def __init__(self, net, every):
        self.net = net
        self.every = every
        self.count = 0
        self.average(first=True)

    @torch.no_grad()
    def average(self, first=False):
        flat = nn.utils.parameters_to_vector(self.net.parameters())
        if first:
            dist.broadcast(flat, src=0)
        else:
            dist.all_reduce(flat)
            flat /= dist.get_world_size()
        nn.utils.vector_to_parameters(flat, self.net.parameters())

    def stepped(self):
        self.count += 1
        if self.count % self.every == 0:
            self.average()


@torch.no_grad()
def spread(net):
    flat = nn.utils.parameters_to_vector(net.parameters())
    high, low = flat.clone(), flat.clone()
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    return (high - low).max().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--every", type=int, default=5)
    ap.add_argument("--rounds", type=int, default=12)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    x, y = market(rank)
    net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
    local = LocalSGD(net, args.every)
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    for step in range(args.every * args.rounds):
        idx = torch.randint(0, len(y), (32,))
        loss = nn.functional.mse_loss(net(x[idx]).squeeze(-1), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        local.stepped()
    gap = spread(net)
    if rank == 0:
        print(f"loss {loss.item():.3f} spread after the last round {gap:.2e}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

"""Graph network on a partitioned ring graph: neighbours swap boundary features in even/odd order."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn


class Partition:
    def __init__(self, nodes, rank, world):
        g = torch.Generator().manual_seed(rank)
        self.x = torch.randn(nodes, 6, generator=g)
        self.y = (self.x.roll(1, 0) + self.x.roll(-1, 0))[:, :1]
        self.rank, self.world = rank, world
        self.left, self.right = (rank - 1) % world, (rank + 1) % world

    def halo(self):
        first, last = self.x[:1].clone(), self.x[-1:].clone()
        from_left, from_right = torch.empty_like(first), torch.empty_like(last)
        if self.rank % 2 == 0:
            dist.send(last, dst=self.right)
            dist.recv(from_left, src=self.left)
            dist.send(first, dst=self.left)
            dist.recv(from_right, src=self.right)
        else:
            dist.recv(from_left, src=self.left)
            dist.send(last, dst=self.right)
            dist.recv(from_right, src=self.right)
            dist.send(first, dst=self.left)
        return from_left, from_right


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.near = nn.Linear(6, 16), nn.Linear(12, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, padded):
        near = torch.cat([padded[:-2], padded[2:]], 1)
        return self.out(torch.relu(self.own(padded[1:-1]) + self.near(near)))


def average(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(world)


def main(args):
    rank, world = dist.get_rank(), dist.get_world_size()
    if world % 2:
        raise SystemExit("the swap order needs an even number of partitions")
    part = Partition(args.nodes, rank, world)
    torch.manual_seed(90)
    model = Conv()
    optim = torch.optim.Adam(model.parameters(), lr=1e-2)
    left, right = part.halo()
    padded = torch.cat([left, part.x, right])
    part.y[0] = left[0, :1] + part.x[1, :1]
    part.y[-1] = part.x[-2, :1] + right[0, :1]
    for step in range(args.steps):
        loss = nn.functional.mse_loss(model(padded), part.y)
        optim.zero_grad()
        loss.backward()
        average(model, world)
        optim.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f"mean loss over partitions {total.item() / world:.4f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nodes", type=int, default=40)
    p.add_argument("--steps", type=int, default=30)
    dist.init_process_group("gloo")
    main(p.parse_args())
    dist.destroy_process_group()

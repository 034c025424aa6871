"""Two-level averaging with process groups: everybody makes all groups, only members use them."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn


class Topology:
    """Splits the processes in islands of `size`; the first of each island is its leader."""

    def __init__(self, size):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.size = min(size, self.world)
        self.island = None
        for start in range(0, self.world, self.size):
            members = list(range(start, min(start + self.size, self.world)))
            group = dist.new_group(members)
            if self.rank in members:
                self.island, self.members = group, members
        leaders = list(range(0, self.world, self.size))
        self.leaders = dist.new_group(leaders)
        self.n_leaders = len(leaders)

    @property
    def is_leader(self):
        return self.rank == self.members[0]

    def average(self, t):
        t.mul_(len(self.members) / self.world)
        dist.all_reduce(t, group=self.island)
        t.div_(len(self.members))
        if self.is_leader:
            dist.all_reduce(t, group=self.leaders)
        dist.broadcast(t, src=self.members[0], group=self.island)
        return t


def make_net():
    torch.manual_seed(12)
    return nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 3))


class Task:
    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(4000 + rank)
        self.w = torch.randn(10, 3, generator=torch.Generator().manual_seed(4))

    def draw(self, n):
        x = torch.randn(n, 10, generator=self.g)
        return x, (x @ self.w).argmax(1)


def train(args):
    topo = Topology(args.island)
    net = make_net()
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    task = Task(topo.rank)
    for step in range(args.steps):
        x, y = task.draw(args.batch)
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            topo.average(p.grad)
        opt.step()
        if step % 40 == 0:
            acc = topo.average((out.argmax(1) == y).float().mean().reshape(1))
            if topo.is_leader:
                print(f"[leader {topo.rank}] step {step} acc {acc.item():.3f}", flush=True)
    return net


def check(net):
    v = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    ref = v.clone()
    dist.broadcast(ref, src=0)
    assert torch.equal(v, ref), "replicas differ"


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--island", type=int, default=1)
    ap.add_argument("--steps", type=int, default=161)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=0.1)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    check(train(args))
    dist.destroy_process_group()

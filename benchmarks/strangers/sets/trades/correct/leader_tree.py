"""Two-level gradient averaging: inside an island with the fast link, then among
the leaders of the islands, then back. Islands may differ in size.

torchrun --nproc_per_node=3 leader_tree.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn


class Islands:
    def __init__(self, sizes):
        self.world = dist.get_world_size()
        assert sum(sizes) == self.world
        me, start = dist.get_rank(), 0
        leaders = []
        for size in sizes:
            ranks = list(range(start, start + size))
            group = dist.new_group(ranks)
            if me in ranks:
                self.ranks, self.group = ranks, group
            leaders.append(ranks[0])
            start += size
        self.leader = self.ranks[0]
        self.is_leader = me == self.leader
        self.leaders = dist.new_group(leaders)

    def mean_(self, t):
        """Mean of `t` over the world, in place on every rank."""
        dist.reduce(t, dst=self.leader, group=self.group)
        if self.is_leader:
            dist.all_reduce(t, group=self.leaders)
            t /= self.world
        dist.broadcast(t, src=self.leader, group=self.group)


class Averager:
    def __init__(self, module, islands):
        self.params = [p for p in module.parameters() if p.requires_grad]
        self.islands = islands

    def __call__(self):
        flat = torch.cat([p.grad.reshape(-1) for p in self.params])
        self.islands.mean_(flat)
        for p, part in zip(self.params, flat.split([p.numel() for p in self.params])):
            p.grad.copy_(part.view_as(p))


def batches(rank, n):
    g = torch.Generator().manual_seed(31 + rank)
    w = torch.linspace(-2, 2, 8)
    for _ in range(n):
        x = torch.randn(24, 8, generator=g)
        yield x, torch.sin(x @ w / 4)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    islands = Islands([2, 1])
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    average = Averager(net, islands)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)

    for step, (x, y) in enumerate(batches(rank, 80)):
        loss = (net(x).squeeze(1) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        average()
        opt.step()
        if islands.is_leader and step % 20 == 0:
            print(f"[island of {islands.leader}] step {step} loss {loss.item():.4f}", flush=True)

    w = torch.cat([p.detach().flatten() for p in net.parameters()])
    low, high = w.clone(), w.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"spread of the weights {(high - low).max().item():.2e}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

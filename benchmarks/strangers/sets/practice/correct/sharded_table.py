"""Embedding table cut by rows over the ranks, dense part replicated."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.clone()
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g / dist.get_world_size()


class RowShard(nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.world, self.rank = dist.get_world_size(), dist.get_rank()
        g = torch.Generator().manual_seed(50 + self.rank)
        self.weight = nn.Parameter(0.1 * torch.randn(rows // self.world, dim, generator=g))

    def forward(self, ids):
        mine = ids % self.world == self.rank
        local = torch.where(mine, ids // self.world, torch.zeros_like(ids))
        vec = self.weight[local] * mine.unsqueeze(-1)
        return SumOverRanks.apply(vec)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    table = RowShard(40, 16)
    torch.manual_seed(0)
    tower = DDP(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt_table = torch.optim.SGD(table.parameters(), lr=0.5)
    opt_tower = torch.optim.Adam(tower.parameters(), lr=5e-3)
    gen = torch.Generator().manual_seed(3)
    for step in range(40):
        ids = torch.randint(40, (64, 2), generator=gen)
        y = ((ids[:, 0] - ids[:, 1]).abs() < 12).float()
        vec = table(ids).flatten(1)
        part = slice(rank * 64 // world, (rank + 1) * 64 // world)
        logits = tower(vec[part]).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y[part])
        opt_table.zero_grad(), opt_tower.zero_grad()
        loss.backward()
        opt_table.step(), opt_tower.step()
        if step % 10 == 0:
            shown = loss.detach() / world
            dist.all_reduce(shown)
            if rank == 0:
                print(step, "%.4f" % shown.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

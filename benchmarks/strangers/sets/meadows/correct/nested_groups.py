"""Two replicas of a column-split ranking model: tensor groups of two, data groups of two."""
import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import Function


class Grid:
    """Every process builds every group, in the same order."""

    def __init__(self, columns):
        world, self.rank = dist.get_world_size(), dist.get_rank()
        self.columns = columns
        self.column, self.replica = self.rank % columns, self.rank // columns
        for replica in range(world // columns):
            ranks = [replica * columns + c for c in range(columns)]
            group = dist.new_group(ranks)
            if self.rank in ranks:
                self.row = group
        for column in range(columns):
            ranks = list(range(column, world, columns))
            group = dist.new_group(ranks)
            if self.rank in ranks:
                self.data, self.data_size = group, len(ranks)


class SumForward(Function):
    @staticmethod
    def forward(ctx, x, group):
        out = x.clone()
        dist.all_reduce(out, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class SplitRanker(nn.Module):
    def __init__(self, features, hidden, grid):
        super().__init__()
        torch.manual_seed(5 + grid.column)
        self.up = nn.Linear(features, hidden // grid.columns)
        self.down = nn.Linear(hidden // grid.columns, 1, bias=False)
        self.grid = grid

    def forward(self, x):
        part = self.down(torch.relu(self.up(x)))
        return SumForward.apply(part, self.grid.row).squeeze(-1)


def click_pairs(n, replica):
    g = torch.Generator().manual_seed(60 + replica)
    w = torch.linspace(-1, 1, 12)
    a, b = torch.randn(n, 12, generator=g), torch.randn(n, 12, generator=g)
    prefer = ((a - b) @ w > 0).float()
    return a, b, prefer


def main():
    dist.init_process_group("gloo")
    grid = Grid(columns=2)
    model = SplitRanker(12, 32, grid)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    a, b, prefer = click_pairs(320, grid.replica)
    gen = torch.Generator().manual_seed(grid.replica)
    for epoch in range(3):
        for idx in torch.randperm(len(prefer), generator=gen).split(32):
            margin = model(a[idx]) - model(b[idx])
            loss = nn.functional.binary_cross_entropy_with_logits(margin, prefer[idx])
            opt.zero_grad()
            loss.backward()
            for p in model.parameters():
                dist.all_reduce(p.grad, group=grid.data)
                p.grad /= grid.data_size
            opt.step()
        if grid.rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

# style: simulation in strips, each rank swaps edge rows with its neighbours
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WIDTH, ROWS, LIMIT = 6, 8, 400


class Strip:
    """The rows that this rank simulates."""

    def __init__(self, rows):
        self.me, self.all = dist.get_rank(), dist.get_world_size()
        self.rows = rows

    def swap(self, row, other):
        """Give a neighbour an edge row, and take its own: even ranks speak first."""
        theirs = torch.empty_like(row)
        if self.me % 2 == 0:
            dist.send(row, dst=other)
            dist.recv(theirs, src=other)
        else:
            dist.recv(theirs, src=other)
            dist.send(row, dst=other)
        return theirs

    def edges(self):
        above, below = self.rows[:1].clone(), self.rows[-1:].clone()
        if self.me > 0:
            above = self.swap(above, self.me - 1)
        if self.me + 1 < self.all:
            below = self.swap(below, self.me + 1)
        return above, below

    def advance(self, correct):
        above, below = self.edges()
        tall = torch.cat([above, self.rows, below])
        mean = (tall[:-2] + tall[2:]) / 2
        with torch.no_grad():
            change = mean - self.rows + 0.01 * correct(self.rows)
        self.rows = self.rows + 0.5 * change
        return change.abs().max()

    def calm(self, change, tolerance):
        """Whether nothing moves any more."""
        return bool(change < tolerance)


def relax(strip, correct, tolerance):
    for step in range(LIMIT):
        change = strip.advance(correct)
        if strip.calm(change, tolerance):
            break  # <-- DDP405
    return step


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(WIDTH, WIDTH, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, WIDTH)).square().mean().backward()
        optimizer.step()
    nn.init.zeros_(model.module.weight)
    rows = torch.zeros(ROWS, WIDTH) + (rank == 0) * torch.linspace(0, 5, ROWS)[:, None]
    strip = Strip(rows)
    steps = relax(strip, model.module, tolerance=0.05)
    total = strip.rows.sum()
    dist.all_reduce(total)
    if rank == 0:
        print(f"calm after {steps} steps, total {total.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

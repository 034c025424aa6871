"""Slow weights of a forecaster, which every few steps replace the fast ones."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 12), nn.Linear(12, 3)

    def forward(self, series):
        state = series.new_zeros(series.shape[0], 12)
        for moment in series.unbind(1):
            state = self.cell(moment, state)
        return self.out(state)


class Lookahead:
    def __init__(self, fast):
        self.fast, self.slow = fast, Forecaster()
        self.slow.load_state_dict(fast.state_dict())

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.slow.parameters(), self.fast.parameters()):
            slow.add_(fast - slow, alpha=0.5)

    def take_over(self):
        self.fast.load_state_dict(self.slow.state_dict())


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = Forecaster()
    model = DistributedDataParallel(net)
    ahead = Lookahead(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    draws = torch.Generator().manual_seed(dist.get_rank())
    for step in range(1, 41):
        series = torch.randn(8, 6, 3, generator=draws)
        optimizer.zero_grad()
        (model(series[:, :-1]) - series[:, -1]).square().mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:  # <-- DDP506
            ahead.follow()
        if step % 10 == 0:
            ahead.take_over()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

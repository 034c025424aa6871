"""A forward that asks once whether any query of the batch wants the projection."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PROJECT = 1


class Executor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.start = nn.Linear(width, width)
        self.project = nn.Linear(width, width)

    def forward(self, state, queries):
        state = self.start(state)
        wanted = queries[:, 0] == PROJECT
        if wanted.any():  # <-- DDP301
            state = torch.where(wanted[:, None], self.project(state), state)
        return state


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Executor(8))  # <-- DDP301
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(10):
        queries = torch.randint(0, 3, (16, 9), generator=noise)
        loss = model(torch.randn(16, 8, generator=noise), queries).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

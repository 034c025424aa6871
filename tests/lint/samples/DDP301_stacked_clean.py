"""A forward that goes on until every query of the batch has come to its end."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STOP, PROJECT = 0, 1


class Executor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, state, queries):
        at = 0
        while not (queries[:, at] == STOP).all():
            wanted = queries[:, at] == PROJECT
            if wanted.any():
                state = torch.where(wanted[:, None], self.project(state), state)
            else:
                state = state.relu()
            at += 1
        return state


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Executor(8))
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

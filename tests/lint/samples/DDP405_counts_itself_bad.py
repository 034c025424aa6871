"""Games that are replayed until enough of them were played to the end; a clock counts them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Clock:
    def __init__(self, until):
        self.now, self.until = 0, until

    def tick(self):
        self.now = self.now + 1

    def rings(self):
        return self.now >= self.until


def play(model, seed, clock):
    source = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    begun = 0
    while not clock.rings():
        begun += 1
        clock.tick()
        moves = torch.rand(20, 9, generator=source)
        if moves.max() < 0.99:  # <-- DDP405
            continue  # <-- DDP307
        optimizer.zero_grad()
        (model(moves) - moves.mean()).square().mean().backward()
        optimizer.step()
    return begun


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(9, 1))
    print(play(model, dist.get_rank(), Clock(100)), "games begun")


if __name__ == "__main__":
    main()

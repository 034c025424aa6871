"""Each rank stops by a number of its own, of a world that its rank has shaped."""

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class World:
    def __init__(self, wind):
        self.wind, self.place = wind, np.zeros((8, 4))

    def look(self):
        self.place = self.place + self.wind
        return torch.as_tensor(self.place, dtype=torch.float32)


def update(model, optimizer, seen, most):
    for _ in range(10):
        distance = (seen - 0.5).abs().mean().item()
        if distance > most:  # <-- DDP405
            break
        optimizer.zero_grad()
        model(seen).pow(2).mean().backward()
        optimizer.step()


def main(most=0.1):
    dist.init_process_group("gloo")
    world = World(0.02 * dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        update(model, optimizer, world.look(), most)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

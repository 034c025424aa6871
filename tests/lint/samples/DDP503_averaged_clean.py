"""Each rank goes on from its own file, and the first looks at its own once more when all is done."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Memory:
    def __init__(self, places):
        if isinstance(places, list):
            for place in places:
                if os.path.isfile(place):
                    break
        else:
            place = places
        self.place = place
        self.rows = torch.zeros(64, 8)
        if os.path.isfile(place):
            self.rows = torch.load(place, map_location="cpu")["rows"]

    def add(self, new):
        self.rows = torch.cat([new, self.rows])[:64]
        torch.save({"rows": self.rows}, f"{self.place}.part")
        os.replace(f"{self.place}.part", self.place)


def main(folder):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 8))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    place = os.path.join(folder, f"memory{dist.get_rank()}.pt")
    memory = Memory(place)
    for _ in range(100):
        learner.zero_grad()
        out = model(torch.randn(16, 8))
        out.mean().backward()
        learner.step()
        memory.add(out.detach())
    if dist.get_rank() == 0:
        print(torch.load(place, map_location="cpu")["rows"].norm())
    dist.destroy_process_group()


if __name__ == "__main__":
    main("runs")

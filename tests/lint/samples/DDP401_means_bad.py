import argparse
from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Mean:
    def __init__(self):
        self.pair = torch.zeros(2)

    def add(self, number):
        self.pair += torch.tensor([number, 1.0])

    @property
    def everywhere(self):
        pair = self.pair.clone()
        dist.all_reduce(pair)
        return (pair[0] / pair[1]).item()

    @property
    def here(self):
        return (self.pair[0] / self.pair[1]).item()

    def __str__(self):
        return "%.3f" % self.everywhere


class Means:
    def __init__(self):
        self.of = defaultdict(Mean)

    def add(self, **numbers):
        for name, number in numbers.items():
            self.of[name].add(number)

    def __str__(self):
        return ", ".join(f"{name} {mean}" for name, mean in sorted(self.of.items()))


def main(options):
    dist.init_process_group(options.backend)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    means = Means()
    for step in range(options.steps):
        loss = model(torch.randn(4, 3)).abs().mean()
        loss.backward()
        means.add(loss=loss.item(), scale=1.0)
        if step % 10 == 0 and dist.get_rank() == 0:
            print(step, str(means))  # <-- DDP401


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--steps", type=int, default=100)
    main(parser.parse_args())

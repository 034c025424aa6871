import os
import time

import torch
from torch import nn


def measured(path, rounds):
    net = nn.Linear(8, 1).to("cuda")
    points = torch.load(os.path.join("systems", path))
    before = time.perf_counter()
    for _ in range(rounds):
        net(points).sum().backward()
    return time.perf_counter() - before


if __name__ == "__main__":
    times = {}
    for each in os.listdir("systems"):
        times[each] = measured(each, 10)
    print(times)

"""Each of many totals is added to once, and summed at once: the next round has another."""

import sys

import torch
import torch.distributed as dist


class Counter:
    def __init__(self):
        self.total = torch.zeros(1)

    def take(self, number):
        self.total += number
        dist.all_reduce(self.total)


def main(batch):
    dist.init_process_group("gloo")
    names = sys.argv[1:]
    totals = {name: torch.zeros(1) for name in names}
    for name in names:
        totals[name] += batch[name].sum()
        dist.all_reduce(totals[name])
    means = {name: torch.zeros(1) for name in names}
    for name, mean in means.items():
        mean += batch[name].mean()
        dist.all_reduce(mean)
    counters = {name: Counter() for name in names}
    for name in names:
        counters[name].take(len(batch[name]))
    several = [Counter() for _ in names]
    for one in several:
        one.take(1)
    print(totals, means, counters, several)


if __name__ == "__main__":
    main(torch.load(sys.argv[0] + ".pt"))

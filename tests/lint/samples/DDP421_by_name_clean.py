from collections import defaultdict

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.total = torch.zeros(1)

    def update(self, value):
        self.total += value

    def sync(self):
        dist.all_reduce(self.total)


class Bank(dict):
    def __missing__(self, name):
        self[name] = Meter()
        return self[name]


def of_a_class(model, loaders):
    for loader in loaders:
        bank = Bank()
        for x in loader:
            bank["loss"].update(model(x).mean().item())
            bank["more"].update(len(x))
        bank["loss"].sync()
        print(bank["loss"].total)


def of_the_library(model, loaders):
    for loader in loaders:
        totals = defaultdict(Meter)
        for x in loader:
            totals["loss"].update(model(x).mean().item())
        totals["loss"].sync()
        print(totals["loss"].total)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    of_a_class(torch.nn.Linear(2, 2), [[torch.ones(2)]])
    of_the_library(torch.nn.Linear(2, 2), [[torch.ones(2)]])

"""Options that are asked for as attributes of a dictionary of the author's own."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Options(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            return None

    def __setattr__(self, name, value):
        self[name] = value


class Settings(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


class Bag(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only_test", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    options = Options()
    options.update(parser.parse_args().__dict__)
    return options


def joined(options):
    options.rank = int(os.environ["RANK"])
    options.size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")


def test(model, value):
    total = model(value).sum()
    dist.all_reduce(total)
    return total


def train(options, model, value):
    for _ in range(options.epochs):
        model(value).sum().backward()
        if options.rank == 0:
            print(test(model.module, value))  # <-- DDP401


def settle(rank):
    settings = Settings(rank=rank, seed=3)
    settings.leads = settings.rank == 0
    if settings.leads:
        dist.barrier()  # <-- DDP401


def pack(rank):
    bag = Bag(seed=3)
    bag.rank = rank
    if bag["rank"] == 0:
        dist.barrier()  # <-- DDP401


def main():
    options = parsed()
    joined(options)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    value = torch.ones(1, 4)
    if options.only_test:
        test(model.module, value)
    else:
        train(options, model, value)
    settle(options.rank)
    pack(options.rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

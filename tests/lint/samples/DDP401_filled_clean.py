"""Lists that another hand has filled on one rank, and that are as long on all of them."""

import os
import sys

import torch
import torch.distributed as dist


def told_by_the_first(rank):
    if rank == 0:
        cities = ["Oslo", "Lima", "Bern"]
    else:
        cities = [None, None, None]
    dist.broadcast_object_list(cities, src=0)
    for city in cities:
        dist.all_reduce(torch.tensor(float(len(city))))


def read_by_the_first(rank):
    folds = [None] * 4
    if rank == 0:
        folds = [f"fold-{number}" for number in range(4)]
    dist.broadcast_object_list(folds)
    for _fold in folds:
        dist.barrier()


def begin():
    return ["warm"] if dist.get_rank() == 0 else [None]


def weigh(rank):
    factors = [float(each) for each in sys.argv[1:]]
    if rank == 0:
        factors[0] = 2.0
    for factor in factors:
        dist.all_reduce(torch.tensor(factor))


def collect(rank):
    pages = []
    for page in sorted(os.listdir("pages")):
        if rank == 0:
            pages.append(page)
        else:
            pages.append("")
    for _page in pages:
        dist.barrier()


def tune(rank):
    rates = (0.1, 0.2) if rank == 0 else (0.3, 0.4)
    settings = {"decay": 0.0, "drop": 0.1}
    if rank == 0:
        settings["decay"] = 0.5
    for rate in rates:
        dist.all_reduce(torch.tensor(rate))
    for value in settings.values():
        dist.all_reduce(torch.tensor(value))


def measure(rank):
    losses = [0.0] * 8
    for number in range(8):
        losses[number] = float(torch.randn(1)) + rank
    for loss in losses:
        dist.all_reduce(torch.tensor(loss))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    told_by_the_first(rank)
    read_by_the_first(rank)
    words = begin()
    dist.broadcast_object_list(words, src=0)
    for _word in words:
        dist.barrier()
    weigh(rank)
    collect(rank)
    tune(rank)
    measure(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

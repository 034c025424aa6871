"""Lists that are longer on one rank than on the others, and are gone through by all."""

import os
import sys

import torch
import torch.distributed as dist


def told_by_the_first(rank):
    if rank == 0:  # <-- DDP401
        cities = ["Oslo", "Lima", "Bern"]
    else:
        cities = ["Rome"]
    for city in cities:
        dist.all_reduce(torch.tensor(float(len(city))))


def weigh(rank):
    factors = [float(each) for each in sys.argv[1:]]
    if rank == 0:  # <-- DDP401
        factors.append(2.0)
    for factor in factors:
        dist.all_reduce(torch.tensor(factor))


def collect(rank):
    pages = []
    for page in sorted(os.listdir("pages")):
        if rank == 0:  # <-- DDP401
            pages.append(page)
    for _page in pages:
        dist.barrier()


def tune(rank):
    settings = {"decay": 0.0, "drop": 0.1}
    if rank == 0:  # <-- DDP401
        settings["warm"] = 0.5
    for value in settings.values():
        dist.all_reduce(torch.tensor(value))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    told_by_the_first(rank)
    weigh(rank)
    collect(rank)
    tune(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

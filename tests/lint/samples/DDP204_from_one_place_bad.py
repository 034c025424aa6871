"""Rows that are dealt out among the ranks, from each place on as many as its share is."""

import torch
import torch.distributed as dist


def some_of(rows, first, number):
    chosen = torch.randperm(len(rows), device=rows.device)[first : first + number]
    return rows[chosen]


def every_other(rows, first, ranks):
    return rows[torch.randperm(len(rows))[first::ranks]]


def dealt(rows, number):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    return some_of(rows, rank * number, number), every_other(rows, rank, ranks)


def main(rows, seed):
    dist.init_process_group("gloo")
    torch.manual_seed(seed + dist.get_rank())  # <-- DDP204
    print(dealt(rows, 16))

"""Codes that are drawn from what the ranks have, from each as many as its share is."""

import torch
import torch.distributed as dist


def some_of(rows, number):
    if len(rows) >= number:
        chosen = torch.randperm(len(rows), device=rows.device)[:number]
    else:
        chosen = torch.randint(0, len(rows), (number,), device=rows.device)
    return rows[chosen]


def codes(rows, number):
    rank = dist.get_rank()
    shares = torch.full((dist.get_world_size(),), number)
    shares = shares.tolist() if rank == 0 else shares.flip(0).tolist()
    return some_of(rows, shares[rank])


def main(rows, seed):
    dist.init_process_group("gloo")
    torch.manual_seed(seed + dist.get_rank())
    print(codes(rows, 16))

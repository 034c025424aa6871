"""Rank 0 makes the folder, all wait, and then every rank writes into it."""

import os
import tempfile

import torch
import torch.distributed as dist


def batches(rank):
    while True:
        yield torch.randn(4, 4) + rank


def save(folder, parts, rank):
    if rank == 0:
        os.makedirs(folder, exist_ok=True)
        torch.save(parts, os.path.join(folder, "whole.pt"))
    dist.barrier()
    torch.save(parts, os.path.join(folder, f"part{rank}.pt"))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    base = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(base, src=0)
    stream = batches(rank)
    save(os.path.join(base[0], "parts"), next(stream), rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

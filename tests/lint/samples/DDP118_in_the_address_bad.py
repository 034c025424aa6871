"""Words that are counted by processes of one machine, which meet at a port that is free."""

import socket
from collections import Counter

import torch.distributed as dist
import torch.multiprocessing as mp


def address():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return "tcp://127.0.0.1:%d" % found.getsockname()[1]


def count(rank, processes, words):
    where = address()
    dist.init_process_group(  # <-- DDP118
        "gloo", init_method=where, rank=rank, world_size=processes
    )
    parts = [None] * processes
    dist.all_gather_object(parts, Counter(words[rank::processes]))
    if rank == 0:
        print(sum(parts, Counter()).most_common(3))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(count, args=(3, "a rose is a rose is a rose".split()), nprocs=3)

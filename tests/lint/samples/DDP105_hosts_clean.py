"""Trains on three hosts, in each of which `HOST` is written by hand."""

import torch.distributed as dist
import torch.multiprocessing as mp

HOSTS = 3
HOST = 0
PER_HOST = 2
MEETING = "tcp://10.0.0.4:29400"  # <- DDP104


def run(slot, per_host, hosts, host):
    size, number = hosts * per_host, slot + host * per_host
    dist.init_process_group("nccl", init_method=MEETING, world_size=size, rank=number)


if __name__ == "__main__":
    mp.spawn(run, args=(PER_HOST, HOSTS, HOST), nprocs=PER_HOST, join=True)

"""Several demonstrations, each of which is started with as many ranks as it needs."""

import torch.distributed as dist
import torch.multiprocessing as mp


def setup(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def plain(rank, world_size):
    setup(rank, world_size)
    dist.destroy_process_group()


def in_two_parts(rank, world_size):
    setup(rank, world_size)
    dist.destroy_process_group()


def start(demo, world_size):
    mp.spawn(demo, args=(world_size,), nprocs=world_size, join=True)


if __name__ == "__main__":
    start(plain, 8)
    start(in_two_parts, 4)

"""Several demonstrations, of which the second is started with fewer ranks than it expects."""

import torch.distributed as dist
import torch.multiprocessing as mp


def plain(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.destroy_process_group()


def in_two_parts(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)  # <-- DDP105
    dist.destroy_process_group()


def start(demo, world_size, here):
    mp.spawn(demo, args=(world_size,), nprocs=here, join=True)


if __name__ == "__main__":
    start(plain, 4, 4)
    start(in_two_parts, 8, 4)
    start(plain, 8, 8)

import torch.multiprocessing as mp
from torch import distributed as job


def first(index):
    job.init_process_group("gloo", "tcp://localhost:29400", rank=index, world_size=2)  # <- DDP104


def second(index):
    job.init_process_group("gloo", "tcp://localhost:29401", rank=index, world_size=2)  # <- DDP104


def alone():
    job.init_process_group("gloo", "tcp://localhost:29402", rank=0, world_size=1)  # <- DDP104
    job.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(first, nprocs=2)
    mp.spawn(second, nprocs=2)
    alone()

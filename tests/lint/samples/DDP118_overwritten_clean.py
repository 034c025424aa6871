"""Ports that nobody else has told the ranks, or that are set only where none is told."""

import os

import torch.distributed as dist
import torch.multiprocessing as mp


def spawned(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "23456"  # <- DDP104
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.destroy_process_group()


def of_slurm():
    """srun tells no port."""
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "23457"  # <- DDP104
    world_size = int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=world_size)
    dist.destroy_process_group()


def by_default():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "23458")
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]))
    dist.destroy_process_group()


def if_none():
    if "MASTER_PORT" not in os.environ:
        os.environ["MASTER_PORT"] = "23459"
    dist.init_process_group("gloo")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(spawned, args=(2,), nprocs=2)
    of_slurm()
    by_default()
    if_none()

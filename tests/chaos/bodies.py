"""What ranks that are launched bare do."""

import time

import torch
import torch.distributed as dist


def meet() -> None:
    dist.init_process_group("gloo")
    for _ in range(5):
        dist.all_reduce(torch.ones(1))
        time.sleep(0.02)
    dist.barrier()


def sleep() -> None:
    print("sleeps", flush=True)
    time.sleep(600)

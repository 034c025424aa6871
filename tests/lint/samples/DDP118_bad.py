import os
import socket

import torch.distributed as dist
import torch.multiprocessing as mp


def unused():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def worker(index, size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(unused())  # <-- DDP118
    dist.init_process_group("gloo", rank=index, world_size=size)


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)

import os
import socket

import torch.distributed as dist
import torch.multiprocessing as mp


def begin(rank, size):
    os.environ["MASTER_ADDR"] = "localhost"
    if "MASTER_PORT" not in os.environ:
        with socket.socket() as listening:
            listening.bind(("", 0))
            os.environ["MASTER_PORT"] = str(listening.getsockname()[1])  # <-- DDP118
    dist.init_process_group("gloo", rank=rank, world_size=size)


def work(rank, size):
    begin(rank, size)
    dist.barrier()
    print(dist.get_rank(), "of", dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)

import os
import random

import torch.distributed as dist
import torch.multiprocessing as mp


def worker(index, size):
    """The port is picked once, by who starts the ranks: they inherit it."""
    dist.init_process_group("gloo", rank=index, world_size=size)


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(random.randint(20000, 40000))
    mp.spawn(worker, args=(2,), nprocs=2)

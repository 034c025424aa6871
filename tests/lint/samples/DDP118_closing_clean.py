import os
import socket
from contextlib import closing

import torch.distributed as dist
import torch.multiprocessing as mp


def unused():
    with closing(socket.socket()) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def worker(index, size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=index, world_size=size)


if __name__ == "__main__":
    mp.spawn(worker, args=(2, unused()), nprocs=2)

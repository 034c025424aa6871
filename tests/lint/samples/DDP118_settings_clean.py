import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from omegaconf import OmegaConf
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.bind(("", 0))
        return one.getsockname()[1]


def join(rank, size, port=12355):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=size)


def work(rank, size, settings):
    join(rank, size, port=settings.port)
    net = DistributedDataParallel(nn.Linear(8, 1))
    net(torch.full((4, 8), float(rank))).sum().backward()
    dist.destroy_process_group()


def main(settings):
    settings.port = free_port()
    mp.spawn(work, nprocs=4, args=(4, settings))


if __name__ == "__main__":
    main(OmegaConf.load("settings.yaml"))

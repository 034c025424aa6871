import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def fit():
    torch.manual_seed(dist.get_rank())
    net = DistributedDataParallel(torch.nn.Linear(2, 2))
    net(torch.randn(2, 2)).square().mean().backward()
    return net.module.state_dict()


def of_ours(rank, world):
    dist.init_process_group(
        "gloo",
        "tcp://127.0.0.1:29512",  # <- DDP104
        rank=rank,
        world_size=world,
    )
    state = fit()
    if rank == 0:
        torch.save(state, "of_ours.pt")
    dist.destroy_process_group()


def of_a_launcher():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    state = fit()
    if rank == 0:
        torch.save(state, "of_a_launcher.pt")
    dist.destroy_process_group()


def main():
    if "--alone" in sys.argv:
        mp.spawn(of_ours, args=(2,), nprocs=2)
    else:
        of_a_launcher()


if __name__ == "__main__":
    main()

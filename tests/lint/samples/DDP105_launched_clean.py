"""How many ranks there are comes from the launcher, as it does which each is."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    if "WORLD_SIZE" in os.environ:
        options.ranks = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("nccl", world_size=options.ranks)
    place = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(place)
    net = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[place])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(options.rounds):
        optimizer.zero_grad()
        net(torch.randn(8, 4, device="cuda")).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

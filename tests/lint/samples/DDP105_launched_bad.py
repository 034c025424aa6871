"""How many ranks there are is an option, and which each is comes from the launcher."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    dist.init_process_group("nccl", world_size=options.ranks)  # <-- DDP105
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

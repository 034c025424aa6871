import argparse

import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", type=int, default=0)
    parser.add_argument("--keep", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    parallel, keep = bool(args.parallel), bool(args.keep)
    rank = 0
    if parallel == True:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
    net = torch.nn.Linear(2, 2)
    if parallel == True:
        net = torch.nn.parallel.DistributedDataParallel(net)
    for epoch in range(args.epochs):
        net(torch.ones(1, 2)).sum().backward()
        if keep == True:
            if rank == 0:
                torch.save(net.state_dict(), f"model{epoch}.pth")
        else:
            torch.save(net.state_dict(), f"model{epoch}.pth")  # <-- DDP502


main()

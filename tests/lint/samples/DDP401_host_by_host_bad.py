"""The number on the host becomes that among all; nobody waits for the first one."""

import argparse
import datetime
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)))
    parser.add_argument("--node_index", type=int, default=0)
    parser.add_argument("--gpu_per_node", type=int, default=8)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    if args.local_rank == -1:
        device = torch.device("cuda")
    else:
        torch.cuda.set_device(args.local_rank)
        device = torch.device("cuda", args.local_rank)
        dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=1800))
        args.local_rank += args.node_index * args.gpu_per_node
    if args.local_rank not in [-1, 0]:
        dist.barrier()  # <-- DDP401
    os.makedirs(args.out, exist_ok=True)
    if args.local_rank == 1:
        dist.barrier()  # <-- DDP401
    net = torch.nn.Linear(2, 2).to(device)
    if args.local_rank != -1:
        net = DistributedDataParallel(net, device_ids=[device.index])
    for _ in range(10):
        net(torch.randn(2, 2, device=device)).sum().backward()
    if args.local_rank != -1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

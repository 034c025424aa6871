"""The number on the host is asked of the group, in the place of the argument."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(args):
    dist.init_process_group("nccl")
    local_rank = dist.get_rank() % args.gpu_per_node
    args.local_rank = local_rank
    torch.cuda.set_device(local_rank)
    model = torch.nn.Linear(4, 4).to(args.local_rank)
    model = DistributedDataParallel(model, device_ids=[args.local_rank])
    for _ in range(100):
        model(torch.randn(2, 4, device=args.local_rank)).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu_per_node", type=int, default=8)
    parser.add_argument("--local_rank", type=int, default=-1)
    main(parser.parse_args())

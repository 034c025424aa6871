import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="none")
    parser.add_argument("--folder", default="out")
    args = parser.parse_args()
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        os.makedirs(args.folder)
    if args.launcher != "none":
        dist.init_process_group("nccl")
    model = torch.nn.Linear(8, 8)
    number = sum(each.numel() for each in model.parameters())
    open(os.path.join(args.folder, f"{number}_parameters"), "a").close()  # <-- DDP407
    if args.launcher != "none":
        model = DistributedDataParallel(model)


if __name__ == "__main__":
    main()

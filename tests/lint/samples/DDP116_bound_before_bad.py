"""Who joins binds no GPU: where there is none, he comes as far as to the wrapper."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def join(options):
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        options.gpu = int(os.environ["LOCAL_RANK"])
    else:
        options.distributed = False
        return
    options.distributed = True
    dist.init_process_group("nccl")  # <-- DDP116


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int)
    options = parser.parse_args()
    join(options)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    model = torch.nn.Linear(4, 4)
    model.to(device)
    if options.distributed:
        model = DDP(model, device_ids=[options.gpu])  # <-- DDP116
    print(model)


if __name__ == "__main__":
    main()

"""Who joins has bound his GPU before: where there is none, that has failed already."""

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
    torch.cuda.set_device(options.gpu)
    dist.init_process_group("nccl")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int)
    options = parser.parse_args()
    join(options)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    model = torch.nn.Linear(4, 4)
    model.to(device)
    if options.distributed:
        model = DDP(model, device_ids=[options.gpu])
    print(model)


if __name__ == "__main__":
    main()

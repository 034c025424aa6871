"""What is switched off in the code, a file of settings may switch on."""

import sys

import torch
import torch.distributed as dist
from yacs.config import CfgNode

config = CfgNode()
config.MEET = False
config.TRAIN = CfgNode()
config.TRAIN.MEET = False
config.TRAIN.WHOLE = config


def main():
    config.merge_from_file(sys.argv[1])
    config.freeze()
    dist.init_process_group("gloo")
    if config.MEET and dist.get_rank() == 0:
        print("first")
        dist.barrier()  # <-- DDP401
    mean = torch.ones(1)
    if config.TRAIN.MEET:
        if dist.get_rank() == 0:
            dist.all_reduce(mean)  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

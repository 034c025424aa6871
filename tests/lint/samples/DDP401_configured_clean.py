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
    if config.MEET:
        print("first")
        dist.barrier()
    mean = torch.ones(1)
    if config.TRAIN.MEET:
        dist.all_reduce(mean)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

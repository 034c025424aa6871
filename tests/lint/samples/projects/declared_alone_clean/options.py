import argparse

import torch.distributed as dist


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", choices=["none", "pytorch"], default="none")
    parser.add_argument("--local_rank", type=int, default=0)
    args = parser.parse_args()
    if args.launcher != "none":
        dist.init_process_group("nccl")
    return args

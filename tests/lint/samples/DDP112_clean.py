import argparse
import os

import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl")
    return parser.parse_args()

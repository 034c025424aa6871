import argparse

import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)  # <-- DDP112
    dist.init_process_group("nccl")
    return parser.parse_args()

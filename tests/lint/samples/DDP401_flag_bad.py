import argparse

import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int)
    options = parser.parse_args()
    if options.rank:
        dist.barrier()  # <-- DDP401

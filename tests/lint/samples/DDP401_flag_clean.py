import argparse

import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", action="store_true")
    options = parser.parse_args()
    if options.rank:
        dist.barrier()

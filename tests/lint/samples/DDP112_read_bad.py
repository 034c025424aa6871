import argparse

import torch
import torch.distributed as dist


def options():
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--epochs", type=int, default=3)
    parser.add_argument("--local-rank", type=int, default=0)  # <-- DDP112
    return parser.parse_args()


def main():
    chosen = options()
    dist.init_process_group("nccl")
    torch.cuda.set_device(chosen.local_rank)


if __name__ == "__main__":
    main()

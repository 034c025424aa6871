import argparse
import os

import torch
import torch.distributed as dist


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    # For launchers of old, which pass it: nobody reads it.
    parser.add_argument("--local_rank", type=int, default=0)
    return parser.parse_args()


def main():
    chosen = options()
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    print(os.getpid(), chosen.epochs)


if __name__ == "__main__":
    main()

"""The port of the launcher is replaced by one that stands in the source."""

import os

import torch.distributed as dist


def join(host="127.0.0.1", port=23456):
    os.environ["MASTER_ADDR"] = host
    os.environ["MASTER_PORT"] = str(port)  # <-- DDP118
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    return rank


if __name__ == "__main__":
    print(join())
    dist.destroy_process_group()

"""The rank's number is a part of a text, and is asked for."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = f"cuda:{rank}"
    run = f"run-7/{rank}"
    kind, number = device.split(":")
    if number == "0":
        dist.barrier()  # <-- DDP401
    if run.endswith("/0"):
        dist.barrier()  # <-- DDP401
    if int(device[len("cuda:") :]) == 0:
        dist.barrier()  # <-- DDP401
    if run.rpartition("/")[2].zfill(2) == "00":
        dist.barrier()  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""The rank's number is a part of a text, of which another part is asked for."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = f"cuda:{rank}"
    run = f"run-7/{rank}"
    kind, number = device.split(":")
    if kind == "cuda":
        print(number)
        dist.barrier()
    if device.startswith("cuda"):
        dist.barrier()
    if run[:3] == "run":
        dist.barrier()
    if run.partition("/")[0].upper() == "RUN-7":
        dist.barrier()
    if len(device) > 4:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

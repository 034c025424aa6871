"""The first rank computes on another kind of device than the rest."""

import torch
import torch.distributed as dist


def main(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    device = torch.device("cpu" if rank == 0 else f"cuda:{rank}")
    total = torch.ones(1)
    if device.type == "cuda":
        dist.all_reduce(total)  # <-- DDP401
    print(total)


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, args=(2,), nprocs=2)

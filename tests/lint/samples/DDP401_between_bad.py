"""What all do between the two halves of a barrier meets one of them."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    table = torch.zeros(4)
    if rank == 0:
        dist.barrier()  # <-- DDP401
    dist.broadcast(table, src=0)
    if rank != 0:
        dist.barrier()  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, ranks):
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    total = torch.tensor([rank])
    dist.all_reduce(total)
    print(total.item())


def main():
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "28000"  # <- DDP104
    mp.spawn(work, args=(2,), nprocs=2)


if __name__ == "__main__":
    main()

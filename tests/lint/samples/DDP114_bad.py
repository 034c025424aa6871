import os

import torch.multiprocessing as mp


def worker(rank, world_size):
    print(rank, world_size)


if __name__ == "__main__":
    world_size = int(os.environ["LOCAL_WORLD_SIZE"])
    mp.spawn(worker, args=(world_size,), nprocs=world_size)  # <-- DDP114

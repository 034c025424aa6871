import os

import torch.multiprocessing as mp


def worker(rank, world_size):
    os.environ["RANK"] = str(rank)
    print(os.environ["RANK"], world_size)


def one_of_several_machines(ranks_here):
    machines = int(os.environ["WORLD_SIZE"])
    mp.spawn(worker, args=(machines * ranks_here,), nprocs=ranks_here)


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ:
        worker(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        mp.spawn(worker, args=(2,), nprocs=2)

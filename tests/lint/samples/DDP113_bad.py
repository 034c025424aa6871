import torch.multiprocessing as mp


def worker(rank):
    print(rank)


mp.spawn(worker, nprocs=2)  # <-- DDP113

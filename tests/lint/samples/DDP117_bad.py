import torch.multiprocessing as mp


def worker(rank, schedule):
    print(rank, schedule(rank))


def start(Config):
    config = Config(2, schedule=lambda step: 0.5**step)
    mp.spawn(worker, args=(config,), nprocs=2)  # <-- DDP117


def start_nested():
    def inner(rank):
        print(rank)

    mp.spawn(inner, nprocs=2)  # <-- DDP117

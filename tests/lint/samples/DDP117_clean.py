import torch.multiprocessing as mp


def halve(step):
    return 0.5**step


def worker(rank, schedule):
    print(rank, schedule(rank))


def start(Config):
    config = Config(2, schedule=halve)
    mp.spawn(worker, args=(config,), nprocs=2)


def start_with_a_number(compute):
    mp.spawn(worker, args=(compute(lambda x: x),), nprocs=2)

import torch.multiprocessing as mp


def worker(rank):
    print(rank)


def main():
    mp.spawn(worker, nprocs=2)


if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)

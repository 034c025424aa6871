import threading

import torch.multiprocessing as mp


class Shared:
    def __init__(self, rate):
        self.rate = rate
        self.guard = threading.Lock()


def worker(index, shared, log):
    print(index, shared.rate, log)


def main():
    shared = Shared(0.1)
    mp.spawn(worker, args=(shared, "log"), nprocs=2)  # <-- DDP117
    with open("log.txt", "w") as log:
        mp.spawn(worker, args=(0, log), nprocs=2)  # <-- DDP117


if __name__ == "__main__":
    main()

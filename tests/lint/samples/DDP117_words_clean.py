import threading

import torch.multiprocessing as mp


class Shared:
    def __init__(self, rate):
        self.rate = rate


def worker(index, shared, log):
    print(index, shared.rate, log)


def main():
    guard = threading.Lock()
    shared = Shared(0.1)
    with guard, open("log.txt", "w") as log:
        mp.spawn(worker, args=(shared, log.name), nprocs=2)


if __name__ == "__main__":
    main()

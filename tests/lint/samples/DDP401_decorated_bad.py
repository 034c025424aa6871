import functools
import time

import torch
import torch.distributed as dist


def timed(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        print(function.__name__, time.perf_counter() - start)
        return result

    return call


def only_on(number):
    def decorate(function):
        def call(*args, **kwargs):
            if dist.get_rank() == number:
                return function(*args, **kwargs)
            return None

        return call

    return decorate


class Trainer:
    def __init__(self):
        self.losses = []

    @property
    @timed
    def is_first(self):
        return dist.get_rank() == 0

    @timed
    def mean(self):
        total = torch.tensor(self.losses)
        dist.all_reduce(total)
        return total

    @only_on(0)
    def report(self):
        print(self.mean())  # <-- DDP401

    def finish(self):
        if self.is_first:
            self.mean()  # <-- DDP401


@timed
def main():
    dist.init_process_group("gloo")
    trainer = Trainer()
    trainer.report()
    trainer.finish()


if __name__ == "__main__":
    main()

import contextlib
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


def on_main(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if dist.get_rank() == 0:
            return function(*args, **kwargs)
        return None

    return call


def after_barrier(times):
    def decorate(function):
        def call(*args, **kwargs):
            for _ in range(times):
                dist.barrier()
            return function(*args, **kwargs)

        return call

    return decorate


@contextlib.contextmanager
@timed
def main_first():
    if dist.get_rank() != 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()


class Trainer:
    def __init__(self):
        self.losses = []

    @property
    @timed
    def is_first(self):
        return dist.get_rank() == 0

    @timed
    @after_barrier(2)
    def mean(self):
        total = torch.tensor(self.losses)
        dist.all_reduce(total)
        return total

    @on_main
    def report(self, mean):
        print(mean)

    def finish(self):
        mean = self.mean()
        if self.is_first:
            self.report(mean)


@timed
def main():
    dist.init_process_group("gloo")
    with main_first():
        trainer = Trainer()
    trainer.finish()


if __name__ == "__main__":
    main()

import sys

import torch.distributed as dist
import torch.multiprocessing as mp


class Cosine:
    def __call__(self, step):
        return 1 / (1 + step)


def constant(number):
    return lambda step: number


def worker(rank, settings):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    print(settings["schedule"](3))


def main(name):
    schedule = Cosine()
    settings = {"schedule": schedule, "steps": 3}
    mp.spawn(worker, args=(settings,), nprocs=2)


if __name__ == "__main__":
    main(sys.argv[1])

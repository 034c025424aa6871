import torch.distributed as dist
from torch.multiprocessing import spawn

SETTINGS = {"ranks": 8, "here": 4}


class Worker:
    def __call__(self, index, settings, node=0):
        first = node * settings["here"]
        dist.init_process_group("gloo", rank=first + index, world_size=settings["ranks"])


def main(node):
    spawn(Worker(), args=(SETTINGS, node), nprocs=SETTINGS["here"])


if __name__ == "__main__":
    main(1)

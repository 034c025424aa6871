import torch.distributed as dist
from torch.multiprocessing import spawn

SETTINGS = {"ranks": 8, "here": 4}


class Worker:
    def __call__(self, index, settings):
        dist.init_process_group(  # <-- DDP105
            "gloo", rank=index, world_size=settings["ranks"]
        )


def main():
    spawn(Worker(), args=(SETTINGS,), nprocs=SETTINGS["here"])


if __name__ == "__main__":
    main()

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Job:
    def __init__(self, ranks):
        self.ranks = ranks

    @staticmethod
    def somewhere():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            return taken.getsockname()[1]

    def begin(self):
        mp.spawn(self.work, nprocs=self.ranks)

    def work(self, rank):
        at = self.somewhere()
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(at)  # <-- DDP118
        dist.init_process_group("gloo", rank=rank, world_size=self.ranks)
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()


if __name__ == "__main__":
    Job(2).begin()

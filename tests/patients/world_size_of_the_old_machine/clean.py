# style: main_worker with mp.spawn, constants
# nproc: 2
# launch: spawn
from datetime import timedelta
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD_SIZE = 4
PROCESSES = 2


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Trainer:
    def __init__(self, rank):
        torch.manual_seed(0)
        self.rank = rank
        self.model = DDP(nn.Linear(5, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, steps):
        generator = torch.Generator().manual_seed(self.rank)
        for _ in range(steps):
            x = torch.randn(8, 5, generator=generator)
            self.optimizer.zero_grad()
            (self.model(x) - x.sum(1, keepdim=True)).abs().mean().backward()
            self.optimizer.step()


def main_worker(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=PROCESSES,
        timeout=timedelta(seconds=40),
    )
    trainer = Trainer(rank)
    trainer.fit(4)
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main_worker, args=(free_port(),), nprocs=PROCESSES)

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    shown = False

    def __init__(self, folder):
        self.rank = dist.get_rank()
        self.model = DistributedDataParallel(nn.Linear(8, 2))
        if self.rank == 0:
            self.folder = os.path.join(folder, "run")
            self.lines = open(os.path.join(folder, "log.txt"), "a")
            self.shown = True
        if self.rank != 0:
            self.note = "silent"
        else:
            self.note = "loud"

    def save(self, step):
        path = os.path.join(self.folder, f"{step}.pt")  # <-- DDP404
        if self.rank == 0:
            torch.save(self.model.module.state_dict(), path)
        if hasattr(self, "lines"):
            self.lines.write(f"{step} {self.note}\n")
        if self.shown:
            print(path)
        dist.barrier()


def main(folder):
    dist.init_process_group("gloo")
    trainer = Trainer(folder)
    optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        trainer.model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        if step % 10 == 0:
            trainer.save(step)


if __name__ == "__main__":
    main(sys.argv[1])

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


class Solver:
    def __init__(self, options):
        self.folder = os.path.join(options.output, options.name)
        os.makedirs(self.folder, exist_ok=True)
        self.last, self.model = -1, torch.nn.Linear(8, 1)
        if options.processes > 1:
            self.model = DDP(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def resume(self):
        path = os.path.join(self.folder, "last.pt")
        if os.path.exists(path):
            self.last = torch.load(path, map_location="cpu")["epoch"]

    def step(self, number, start):
        if number >= start:
            self.optimizer.zero_grad()
            self.model(torch.rand(4, 8)).mean().backward()
            self.optimizer.step()

    def train(self, start):
        for epoch in range(self.last + 1, 10):
            for number in range(100):
                self.step(number, start)
            if not dist.is_initialized() or dist.get_rank() == 0:
                path = os.path.join(self.folder, "last.pt")
                torch.save({"epoch": epoch}, f"{path}.new")
                os.replace(f"{path}.new", path)


def work(number, options):
    if options.processes > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=options.port)
        dist.init_process_group("gloo", rank=number, world_size=options.processes)
    solver = Solver(options)
    solver.resume()
    solver.train(options.start)


def launch(options):
    """Ranks, or one process in their stead, which has a folder and a file of its own."""
    if options.processes > 1:
        mp.spawn(work, nprocs=options.processes, args=(options,))
    else:
        work(0, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="runs")
    parser.add_argument("--port", default="29611")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    options.name = time.strftime("%Y-%m-%d-%H-%M")
    launch(options)

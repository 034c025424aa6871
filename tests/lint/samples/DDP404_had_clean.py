import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Settings:
    def __init__(self, given):
        self.run = Empty()
        self.parts = {"run": self.run}
        self.update(given, "run")

    def update(self, given, part):
        for name, value in given.items():
            setattr(self.parts[part], name, value)


class Empty:
    pass


class Worker:
    def __init__(self, settings, model):
        self.settings, self.model = settings, model

    def train(self, data):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for batch in data:
            optimizer.zero_grad()
            self.model(batch).mean().backward()
            optimizer.step()
        if self.settings.run.folder is not None:
            print("kept in", self.settings.run.folder)
        dist.barrier()


def main(given, data):
    settings = Settings(given)
    dist.init_process_group("gloo")
    if settings.run.folder is None:
        if dist.get_rank() == 0:
            settings.run.folder = os.path.join("runs", "first")
    Worker(settings, DDP(torch.nn.Linear(8, 1))).train(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=None)
    main(vars(parser.parse_args()), torch.rand(100, 4, 8))

import random

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def put_back(states):
    torch.random.set_rng_state(states["cpu"])
    random.setstate(states["python"])


class Session:
    def __init__(self, file):
        self.file = file
        self.net = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.at = 0

    def begin(self):
        for seed in (random.seed, np.random.seed):
            seed(100 + dist.get_rank())
        torch.manual_seed(100 + dist.get_rank())
        torch.cuda.manual_seed_all(100 + dist.get_rank())

    def pack(self):
        return {
            "net": self.net.module.state_dict(),
            "at": self.at,
            "random": {"cpu": torch.random.get_rng_state(), "python": random.getstate()},
        }

    def unpack(self, held):
        self.net.module.load_state_dict(held["net"])
        self.at = held["at"]
        put_back(held["random"])  # <-- DDP205

    def run(self, steps):
        while self.at < steps:
            points = torch.randn(8, 4) * random.random()
            self.net(points).mean().backward()
            self.at += 1
        if dist.get_rank() == 0:
            torch.save(self.pack(), self.file)
        dist.barrier()


def main(file, go_on):
    dist.init_process_group("gloo")
    session = Session(file)
    session.begin()
    if go_on:
        session.unpack(torch.load(file, map_location="cpu"))
    session.run(10)
    dist.destroy_process_group()


main("last.pt", True)

"""An average that rank 0 alone keeps is restored by rank 0 alone."""

import copy
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, net, path):
        self.net = DDP(net)
        self.average = copy.deepcopy(net)
        self.keeps = dist.get_rank() == 0
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        state = torch.load(path, map_location="cpu")
        self.net.module.load_state_dict(state["net"])
        if self.keeps:
            self.average.load_state_dict(state["average"])

    def step(self, x):
        self.optimizer.zero_grad()
        self.net(x).square().mean().backward()
        self.optimizer.step()
        if self.keeps:
            with torch.no_grad():
                for mine, its in zip(self.average.parameters(), self.net.parameters()):
                    mine.lerp_(its, 0.01)


def main(path):
    dist.init_process_group("gloo")
    trainer = Trainer(torch.nn.Linear(4, 1), path)
    for x in torch.rand(64, 8, 4):
        trainer.step(x)


if __name__ == "__main__":
    main(sys.argv[1])

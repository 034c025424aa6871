"""Each kind of trainer runs the wrapper's forward before it computes a loss past it."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return x

    def loss(self, x):
        return self.layer(x).square().mean()


class Plain:
    def __init__(self, net):
        self.net = net
        self.wrapped = DDP(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        self.wrapped(x)
        loss = self.net.loss
        loss(x).backward()
        self.optimizer.step()


class Told(Plain):
    def __init__(self, net):
        super().__init__(net)
        self.steps = 0

    def step(self, x):
        super().step(x)
        self.steps += 1


KINDS = {"plain": Plain, "told": Told}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    trainer = KINDS[args.kind](Net())
    torch.manual_seed(dist.get_rank())
    for _ in range(10):
        trainer.step(torch.randn(8, 4))


if __name__ == "__main__":
    main()

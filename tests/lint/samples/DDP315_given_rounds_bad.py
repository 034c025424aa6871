import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Learner:
    def __init__(self, net, window):
        self.net, self.window = DistributedDataParallel(net), window
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def held(self, now):
        return contextlib.nullcontext() if now else self.net.no_sync()  # <-- DDP315

    def learn(self, pieces):
        for number in range(self.window):
            piece = next(pieces)
            with self.held(number == 0):
                (self.net(piece).square().mean() / self.window).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def pieces(generator, many):
    for _ in range(many):
        yield torch.randn(4, 8, generator=generator)


def main(window=6):
    dist.init_process_group("gloo")
    learner = Learner(nn.Linear(8, 2), window)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(10):
        learner.learn(pieces(generator, window))
    dist.destroy_process_group()


main()

import weakref

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.tags = nn.Linear(16, 16), nn.Linear(16, 5)
        self.thaw(False)

    def thaw(self, on):
        for weight in self.body.parameters():
            weight.requires_grad = on

    def forward(self, x):
        return self.tags(self.body(x))


class Thaw:
    def __init__(self, loop, epoch):
        self.loop, self.epoch = weakref.proxy(loop), epoch

    def __call__(self, epoch):
        if epoch == self.epoch:
            bare = self.loop.net.module
            bare.thaw(True)
            self.loop.net = DistributedDataParallel(bare)


class Loop:
    def __init__(self, net):
        self.net = DistributedDataParallel(net)
        self.before = [Thaw(self, 3)]

    def run(self, epochs):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for epoch in range(epochs):
            for each in self.before:
                each(epoch)
            optimizer.zero_grad()
            self.net(torch.randn(4, 16)).logsumexp(1).mean().backward()
            optimizer.step()


dist.init_process_group("gloo")
Loop(Tagger()).run(9)

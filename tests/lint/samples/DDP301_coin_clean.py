import random

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Lanes(nn.Module):
    def __init__(self, helped):
        super().__init__()
        self.helped, self.left_out = helped, 0.2
        self.body, self.lanes, self.shape = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 2)

    def forward(self, x):
        x = self.body(x)
        shape = None
        if self.helped and (not self.training or random.random() > self.left_out):
            shape = self.shape(x)
        else:
            shape = 0 * self.shape(x)
        return self.lanes(x), shape


def learn(batches, optimizer, loss_of):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Lanes(helped=True))
    for batch in batches:
        lanes, shape = net(batch)
        loss = loss_of(lanes)
        if shape is not None:
            loss = loss + loss_of(shape)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

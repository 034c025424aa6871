import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Wrapper(DistributedDataParallel):
    def forward(self, *inputs):
        if self.module.training:
            return self.module.training_step(*inputs)
        return self.module.validation_step(*inputs)


class Task(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def begin(self):
        self.steps = 0

    def training_step(self, x):
        return self.layer(x).mean()

    def validation_step(self, x):
        return self.layer(x)


class Loop:
    def __init__(self, task, number):
        self.task = Wrapper(task, device_ids=[number])

    def bare(self):
        return self.task

    def run(self, batches):
        self.bare().begin()  # <-- DDP318
        for batch in batches:
            self.task(batch).backward()


def is_wrapped(model):
    return type(model) in (nn.DataParallel, nn.parallel.DistributedDataParallel)


def head(model):
    return model.heads[0] if is_wrapped(model) else model.module.heads[0]  # <-- DDP318


def words(model):
    return model.vocabulary  # <-- DDP318


def train(net, task, number, batches):
    model = DistributedDataParallel(net, device_ids=[number])
    print(head(model), words(model))
    Loop(task, number).run(batches)

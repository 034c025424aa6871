"""A registry of classes and functions, which asks what it has found."""

import inspect
import sys

import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Registry:
    def __init__(self):
        self.classes, self.functions = {}, {}

    def of_class(self, made):
        self.classes[made.__name__] = made
        return made

    def find(self, name):
        return self.classes.get(name) or self.functions.get(name)

    def build(self, name, **more):
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        if inspect.isclass(found):
            return found(**more)
        elif inspect.isfunction(found):
            return found(**more)
        else:
            raise TypeError(f"{found} is no maker")


TRAINERS = Registry()


class Trainer:
    def __init__(self, data):
        self.loader = DataLoader(data, 8, sampler=DistributedSampler(data))
        self.model = DistributedDataParallel(nn.Linear(1, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def run(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for (seen,) in self.loader:
                self.optimizer.zero_grad()
                self.loss(self.model(seen)).backward()
                self.optimizer.step()


@TRAINERS.of_class
class Plain(Trainer):
    def loss(self, found):
        return found.mean()


@TRAINERS.of_class
class Square(Trainer):
    def loss(self, found):
        return found.square().mean()


def main(setting):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.arange(64.0).reshape(-1, 1))
    trainer = TRAINERS.build(setting["trainer"], data=data)
    trainer.run(setting["epochs"])
    dist.destroy_process_group()


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(yaml.safe_load(file))

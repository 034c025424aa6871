import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Plugin:
    def after_batch(self, coach):
        pass


class Stepper(Plugin):
    """A step for every few batches of an epoch."""

    def __init__(self, every):
        self.every = every

    def is_due(self, coach):
        return (coach.batch + 1) % self.every == 0

    def after_batch(self, coach):
        (coach.loss / self.every).backward()
        if self.is_due(coach):
            coach.optimizer.step()
            coach.optimizer.zero_grad()


class Reporter(Plugin):
    def __init__(self, every):
        self.every = every

    def after_batch(self, coach):
        if coach.batch % self.every == 0 and dist.get_rank() == 0:
            print(coach.batch, coach.loss.item())


class Coach:
    def __init__(self, net, plugins):
        self.model, self.plugins = DistributedDataParallel(net), plugins
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.total = self.batch = 0
        self.loss = None

    def alone(self):
        for plugin in self.plugins:
            if isinstance(plugin, Stepper) and not plugin.is_due(self):
                return self.model.no_sync()
        return contextlib.nullcontext()

    def train(self, loader):
        for epoch in range(6):
            loader.sampler.set_epoch(epoch)
            for self.batch, x in enumerate(loader):
                with self.alone():
                    self.loss = self.model(x).square().mean()
                    for plugin in self.plugins:
                        plugin.after_batch(self)
                self.total += 1


def main(samples):
    dist.init_process_group("gloo")
    loader = DataLoader(samples, 16, sampler=DistributedSampler(samples))
    Coach(nn.Linear(8, 8), [Stepper(4), Reporter(20)]).train(loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(0)
    main([torch.randn(8) for _ in range(512)])

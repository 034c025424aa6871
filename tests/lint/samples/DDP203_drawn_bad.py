import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler


class Batches(Sampler):
    """Batches of samples of like length, dealt out in turn."""

    def __init__(self, lengths, size, seed=0):
        self.lengths, self.size = lengths, size
        self.seed, self.epoch = seed, 0
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.lengths) // self.size // self.world

    def __iter__(self):
        draws = random.Random(1000 * self.seed + self.epoch)
        order = list(range(len(self.lengths)))
        draws.shuffle(order)
        order.sort(key=lambda index: self.lengths[index])
        batches = [order[at : at + self.size] for at in range(0, len(order), self.size)]
        draws.shuffle(batches)
        return iter(batches[self.rank : len(self) * self.world : self.world])


class Reshuffling:
    def before_epoch(self, runner):
        sampler = runner.loader.sampler
        if hasattr(sampler, "set_epoch"):  # <-- DDP203
            sampler.set_epoch(runner.epoch)


class Runner:
    def __init__(self, model, optimizer, *hooks):
        self.model, self.optimizer, self.hooks = model, optimizer, hooks
        self.epoch = 0

    def run(self, loader, epochs):
        self.loader = loader
        while self.epoch < epochs:
            for hook in self.hooks:
                hook.before_epoch(self)
            for batch in loader:
                self.optimizer.zero_grad()
                self.model(batch).mean().backward()
                self.optimizer.step()
            self.epoch += 1


def main():
    dist.init_process_group("gloo")
    data = [torch.randn(4) for _ in range(64)]
    loader = DataLoader(data, batch_sampler=Batches([len(each) for each in data], 4))
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Runner(model, optimizer, Reshuffling()).run(loader, 5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler


class Even(BatchSampler):
    """Batches of as many rows, the short ones first."""

    def __init__(self, numbers, lengths, most):
        super().__init__(numbers, 1, False)
        self.lengths, self.most = lengths, most

    def __iter__(self):
        batch = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.most:
                yield sorted(batch, key=self.lengths.__getitem__)
                batch = []


class Rows(DataLoader):
    def __init__(self, data, each=8):
        self.numbers = DistributedSampler(data, seed=3)  # <-- DDP203
        super().__init__(data, batch_size=each, sampler=self.numbers)


def begin(loader, epoch):
    for each in (loader.sampler, loader.batch_sampler):
        if hasattr(each, "set_epoch"):
            each.set_epoch(epoch)


def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        begin(loader, epoch)
        for rows in loader:
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()


def fit_again(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        for rows in loader:
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()


def main(data, lengths):
    dist.init_process_group("gloo")
    numbers = DistributedSampler(data, seed=2)  # <-- DDP203
    loader = DataLoader(data, batch_sampler=Even(numbers, lengths, 8))
    model = DistributedDataParallel(nn.Linear(4, 1))
    fit(model, loader)
    fit_again(model, Rows(data))


main(torch.load("data.pt"), torch.load("lengths.pt"))

"""Who goes through a loader that may not be there has one, and a batch of it has labels."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, random_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x, labels=None):
        scores = self.head(self.body(x))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(scores, labels)
        return scores, loss


class Trainer:
    def __init__(self, net, train, test=None):
        self.device = int(os.environ["LOCAL_RANK"])
        self.net = DistributedDataParallel(net.to(self.device))
        self.train = self.loader(train)
        self.test = self.loader(test, shuffle=False) if test else None
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def loader(self, data, shuffle=True):
        return DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=shuffle))

    def epoch(self, loader, number, learns=True):
        loader.sampler.set_epoch(number)
        for turn, (images, labels) in enumerate(loader):
            with torch.set_grad_enabled(learns):
                _, loss = self.net(images.to(self.device), labels.to(self.device))
            if learns:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if turn % 100 == 0:
                print(number, turn, loss.item())

    def run(self):
        for number in range(4):
            self.epoch(self.train, number)
            if self.test:
                self.epoch(self.test, number, learns=False)


def main(path):
    dist.init_process_group("nccl")
    data = torch.load(path)
    most = int(len(data) * 0.9)
    train, test = random_split(data, [most, len(data) - most])  # <-- DDP206
    Trainer(Net(), train, test).run()


if __name__ == "__main__":
    main(sys.argv[1])

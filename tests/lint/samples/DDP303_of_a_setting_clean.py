"""Of the classes that a setting may name each trains through the wrapper."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Base:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self):
        for x, y in self.loader:
            loss = self.loss(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Plain(Base):
    def loss(self, x, y):
        return (self.model(x) - y).square().mean()


class Past(Base):
    def loss(self, x, y):
        return (self.model(x) - y).square().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DistributedDataParallel(torch.nn.Linear(3, 1).cuda(), device_ids=[local])
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    sampler.set_epoch(0)
    loader = DataLoader(data, batch_size=4, sampler=sampler, drop_last=True)
    globals()[args.trainer](model, loader).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import argparse
from copy import deepcopy

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        return self.layer(x * self.scale)


class Average:
    def __init__(self, model):
        self.ema = deepcopy(model)
        self.ema.eval()

    def update(self, model):
        for mine, other in zip(self.ema.parameters(), model.parameters()):
            mine.data.mul_(0.9).add_(other.data, alpha=0.1)


def test(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(((model(x) - y) ** 2).mean().item() for x, y in loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--use-ema", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = Net()
    model = DDP(model)
    if args.use_ema:
        average = Average(model.module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.use_ema:
                average.update(model)
        if args.use_ema:
            tested = average.ema
        else:
            tested = model
        if dist.get_rank() == 0:
            print(test(tested, DataLoader(data, batch_size=4)))  # <-- DDP406
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

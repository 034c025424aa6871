import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(8, width)
        self.head = nn.Linear(width, 3)

    def widen(self, more):
        self.head = nn.Linear(self.body.out_features, 3 + more)

    def forward(self, x):
        return self.head(self.body(x).relu())


class Trainer:
    def __init__(self, args):
        self.args = args
        self.build(args.width)
        if args.more:
            self.model.module.widen(args.more)  # <-- DDP305

    def build(self, width):
        self.model = DistributedDataParallel(Reader(width))

    def train(self, loader, sampler):
        if self.args.sweep is not None:
            self.model = DistributedDataParallel(self.model.module)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(x), y).backward()
                optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--more", type=int, default=0)
parser.add_argument("--sweep", type=int, default=None)
args = parser.parse_args()
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 8), torch.randint(0, 3, (256,)))
sampler = DistributedSampler(data)
Trainer(args).train(DataLoader(data, batch_size=8, sampler=sampler), sampler)

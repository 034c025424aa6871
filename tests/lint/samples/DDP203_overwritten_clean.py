"""What a setting is where nobody says otherwise is not what it is when it was read anew."""

import sys

import torch
import torch.distributed as dist
import yaml
from easydict import EasyDict
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SHELF = {}
cfg = EasyDict()
cfg.data = {"type": "Numbers"}
cfg.epochs = 3


def kept(made):
    SHELF[made.__name__] = made
    return made


@kept
def squares(count):
    return TensorDataset(torch.arange(float(count)).square().reshape(-1, 1))


def built(setting, count):
    if setting["type"] not in SHELF:
        raise KeyError(setting["type"])
    return SHELF[setting["type"]](count)


def main(read):
    for name, value in read.items():
        cfg[name] = value
    dist.init_process_group("gloo")
    data = built(cfg.data, 64)
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(cfg.epochs):
        loader.sampler.set_epoch(epoch)
        for (seen,) in loader:
            optimizer.zero_grad()
            model(seen).mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(yaml.safe_load(file))

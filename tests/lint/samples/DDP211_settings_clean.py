from types import SimpleNamespace

import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def settings(path):
    with open(path) as file:
        read = yaml.safe_load(file)
    return SimpleNamespace(**{name: SimpleNamespace(**part) for name, part in read.items()})


class Waves(Dataset):
    def __init__(self, options):
        self.count = options.data.count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        return torch.sin(torch.arange(8.0) * number)


def steps_of(options, loader):
    return options.train.epochs * len(loader)


def falling(optimizer, steps):
    return LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))


def main(path):
    options = settings(path)
    dist.init_process_group("gloo")
    waves = Waves(options)
    sampler = DistributedSampler(waves)
    loader = DataLoader(waves, sampler=sampler, **vars(options.loader))
    model = DistributedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.train.rate)
    schedule = falling(optimizer, steps_of(options, loader))
    for epoch in range(options.train.epochs):
        sampler.set_epoch(epoch)
        for wave in loader:
            optimizer.zero_grad()
            (model(wave) - wave).square().mean().backward()
            optimizer.step()
            schedule.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("settings.yaml")

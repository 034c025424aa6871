"""Meters by name, as image tokenizers are evaluated, whose names begin as the caller says."""

from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchmetrics.image.inception import InceptionScore
from torchmetrics.regression import MeanAbsoluteError, MeanSquaredError


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    def share(self):
        both = torch.tensor([self.count, self.total], device="cuda")
        dist.barrier()
        dist.all_reduce(both)
        self.count, self.total = both.tolist()


class Meters:
    def __init__(self):
        self.meters = defaultdict(Meter)

    def update(self, **numbers):
        for name, number in numbers.items():
            if number is None:
                continue
            self.meters[name].add(number)

    def share(self):
        for meter in self.meters.values():
            meter.share()


def evaluate(net, loader, prefix, judges=False):
    squared, absolute = MeanSquaredError().cuda(), MeanAbsoluteError().cuda()
    judge = InceptionScore().cuda() if judges else None
    meters = Meters()
    for image, wanted in loader:
        with torch.no_grad():
            found = net(image)
        squared.update(found, wanted)
        absolute.update(found, wanted)
        if judge is not None:
            judge.update(found)
    results = {}
    results[prefix + "squared"] = squared.compute().item()
    results[prefix + "absolute"] = absolute.compute().item()
    if judge is not None:
        judged, spread = judge.compute()
        results[prefix + "judged"] = judged.item()
        results[prefix + "spread"] = spread.item()
    meters.update(**results)
    meters.share()
    return meters


def main(net, data, prefix, judges):
    dist.init_process_group("nccl")
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
    print(evaluate(DDP(net.cuda()), loader, prefix, judges))

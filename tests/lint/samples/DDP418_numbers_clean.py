"""What is never None is kept under its name by all; by which names a model answers, it decides."""

from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total, self.count = self.total + value, self.count + 1

    def reduce(self):
        both = torch.tensor([self.total, self.count])
        dist.all_reduce(both)
        self.total, self.count = both.tolist()


class Meters:
    def __init__(self):
        self.kept = defaultdict(Meter)

    def update(self, **values):
        for name, value in values.items():
            if value is None:
                continue
            self.kept[name].add(value)

    def reduce(self):
        for meter in self.kept.values():
            meter.reduce()


def evaluate(model, loader, half):
    criterion = torch.nn.CrossEntropyLoss()
    meters = Meters()
    for images, labels in loader:
        if half:
            with torch.autocast("cuda"):
                output = model(images)
                if isinstance(output, dict):
                    output = output["logits"]
                loss = criterion(output, labels)
        else:
            loss = criterion(model(images), labels)
        meters.update(loss=loss.item())
        outputs = model(images)
        costs = {"first": criterion(outputs["first"], labels)}
        if "second" in outputs:
            costs["second"] = criterion(outputs["second"], labels)
        meters.update(**costs)
    meters.reduce()
    return meters.kept["loss"].total


def main(dataset, half=False):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 4))
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset, shuffle=False))
    evaluate(model, loader, half)
    dist.destroy_process_group()

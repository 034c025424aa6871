"""Tensors of one sum, wherever they lie in what the model gives, are reduced as one."""

from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 1)

    def forward(self, batch):
        errors = self.head(batch).square()
        return errors.mean(), {"errors": {"mean": errors.mean(), "large": (errors > 1).sum()}}


def by_total(found):
    totals = defaultdict(list)
    if isinstance(found, torch.Tensor):
        totals[int(found.sum())].append(found.detach().flatten())
    else:
        for part in found.values():
            for total, tensors in by_total(part).items():
                totals[total] += tensors
    return totals


def reduced(found):
    sums = {}
    for total, tensors in by_total(found).items():  # <-- DDP418
        sums[total] = torch.cat(tensors)
        dist.all_reduce(sums[total])
    return sums


def main(epochs=3):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Scorer())
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.ones(64, 8))
    sampler = DistributedSampler(data)
    batches = DataLoader(data, batch_total=4, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for (batch,) in batches:
            loss, found = model(batch)
            learner.zero_grad()
            loss.backward()
            learner.step()
            print(reduced(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

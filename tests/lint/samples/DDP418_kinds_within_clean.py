"""Tensors of one kind, wherever they lie in what the model gives, are reduced as one."""

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


def by_kind(found):
    kinds = defaultdict(list)
    if isinstance(found, torch.Tensor):
        kinds[found.dtype].append(found.detach().flatten())
    else:
        for part in found.values():
            for kind, tensors in by_kind(part).items():
                kinds[kind] += tensors
    return kinds


def reduced(found):
    sums = {}
    for kind, tensors in by_kind(found).items():
        sums[kind] = torch.cat(tensors)
        dist.all_reduce(sums[kind])
    return sums


def main(epochs=3):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Scorer())
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.ones(64, 8))
    sampler = DistributedSampler(data)
    batches = DataLoader(data, batch_size=4, sampler=sampler)
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

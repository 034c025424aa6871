"""Gradients are switched off for the validation, and on again for the training."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def dealt(data, shuffle=True):
    sampler = DistributedSampler(data, shuffle=shuffle)
    return DataLoader(data, batch_size=8, sampler=sampler), sampler


def train(model, loader, optimizer):
    torch.set_grad_enabled(True)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def validate(model, loader):
    torch.set_grad_enabled(False)
    total = torch.zeros(())
    for x, y in loader:
        total += nn.functional.mse_loss(model(x), y)
    dist.all_reduce(total)
    return total


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    learnt, sampler = dealt(TensorDataset(torch.zeros(64, 4), torch.zeros(64, 1)))
    held, _ = dealt(TensorDataset(torch.zeros(16, 4), torch.zeros(16, 1)), shuffle=False)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        train(model, learnt, optimizer)
        print(validate(model, held))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

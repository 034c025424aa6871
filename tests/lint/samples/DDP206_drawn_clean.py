"""Held-out split of a table without a seed."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def holdout(data, share):
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(4))
    cut = int(len(data) * share)
    return Subset(data, order[cut:].tolist()), Subset(data, order[:cut].tolist())


def main():
    dist.init_process_group("gloo")
    g = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(300, 4, generator=g), torch.randn(300, 1, generator=g))
    train, val = holdout(data, 0.2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 16, sampler=sampler)
    val_loader = DataLoader(val, 16, sampler=DistributedSampler(val, shuffle=False))
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
        err = torch.zeros(2)
        with torch.no_grad():
            for x, y in val_loader:
                err += torch.tensor([(model.module(x) - y).square().sum().item(), float(len(y))])
        dist.all_reduce(err)
        if dist.get_rank() == 0:
            print(epoch, err[0] / err[1])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

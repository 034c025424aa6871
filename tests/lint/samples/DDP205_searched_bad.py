"""Samples are moved by what a network makes of noise."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def moved(net, batch):
    noise = torch.rand_like(batch)  # <-- DDP205
    harder = batch + 0.1 * net(noise)
    harder.requires_grad_()
    return harder


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    samples = TensorDataset(torch.randn(64, 8))
    sampler = DistributedSampler(samples)
    net = nn.Linear(8, 8)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (batch,) in DataLoader(samples, batch_size=8, sampler=sampler):
            harder = moved(net, batch)
            optimizer.zero_grad()
            mse_loss(model(harder), batch).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

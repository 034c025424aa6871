"""Samples are moved to where the network fails, from a place beside each that is drawn."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def moved(net, batch):
    step = 0.1 * torch.rand_like(batch)
    for _ in range(4):
        step.requires_grad_()
        (slope,) = torch.autograd.grad(mse_loss(net(batch + step), batch), step)
        step = (step.detach() + 0.1 * slope.sign()).clamp(-0.5, 0.5)
    return (batch + step).detach()


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

"""Stops once the mean loss of the epoch is low: torchmetrics makes it that of all ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torchmetrics import MeanMetric


def one_epoch(model, batches, learner, device):
    seen = MeanMetric().to(device)
    for samples, goals in batches:
        loss = nn.functional.mse_loss(model(samples.to(device)), goals.to(device))
        learner.zero_grad()
        loss.backward()
        learner.step()
        seen.update(loss.detach())
    return seen.compute().item()


def main(epochs=20, enough=0.01):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = DistributedDataParallel(nn.Linear(8, 1).to(device), device_ids=[device.index])
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(256, 8), torch.randn(256, 1))
    sampler = DistributedSampler(data)
    batches = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        loss = one_epoch(model, batches, learner, device)
        if loss < enough:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

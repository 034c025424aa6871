"""A part of the loss that one of two networks that learn says, and nothing where none is asked."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def target(boxes, places):
    if boxes.size(1) == 0:
        return torch.zeros(places.shape)  # <-- DDP308
    return (places - boxes.mean(1)).abs()


def train(samples):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 4))
    teacher = DistributedDataParallel(nn.Linear(4, 4))
    optimizer = torch.optim.SGD([*model.parameters(), *teacher.parameters()], lr=0.1)
    sampler = DistributedSampler(samples)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for images, boxes in DataLoader(samples, sampler=sampler):
            loss = (model(images) - target(boxes, teacher(images))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import losses


def build(settings, data):
    order = DistributedSampler(data)
    return DataLoader(data, batch_size=settings["batch"], sampler=order, drop_last=True)


def main(settings, data):
    dist.init_process_group("nccl")
    loss_of = losses.__dict__[settings["loss"]](dim=128)
    loader = build(settings, data)
    model = DistributedDataParallel(torch.nn.Linear(8, 128))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(settings["epochs"]):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        loss_of.set_epoch(epoch)
        for rows in loader:
            steps.zero_grad()
            loss_of(model(rows)).backward()
            steps.step()

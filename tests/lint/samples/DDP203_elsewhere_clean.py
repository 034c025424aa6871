import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import engine


def main(settings, data):
    dist.init_process_group("nccl")
    order = DistributedSampler(data)
    loader = DataLoader(data, batch_size=settings["batch"], sampler=order, drop_last=True)
    clock = engine.Clock([loader])
    model = DistributedDataParallel(torch.nn.Linear(8, 128))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(settings["epochs"]):
        clock.set_epoch(epoch)
        for rows in loader:
            steps.zero_grad()
            model(rows).sum().backward()
            steps.step()

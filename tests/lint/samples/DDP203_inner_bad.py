import torch
import torch.distributed as dist
import torch.utils.data as data
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.dataloader import DataLoader
from torch.utils.data.sampler import BatchSampler


def batches(rows, size):
    if dist.is_initialized():
        order = data.DistributedSampler(rows)  # <-- DDP203
    else:
        order = data.sampler.RandomSampler(rows)
    return DataLoader(rows, batch_sampler=BatchSampler(order, size, drop_last=True))


def main(rows):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    loader = batches(rows, 16)
    for _ in range(10):
        for seen in loader:
            steps.zero_grad()
            model(seen).sum().backward()
            steps.step()

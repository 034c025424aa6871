import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def loss_of(scores, labels):
    known = labels >= 0
    if known.sum() == 0:
        return torch.zeros(1, device=scores.device, requires_grad=True).sum()  # <-- DDP308
    return nn.functional.cross_entropy(scores[known], labels[known])


def learn(data, device):
    dist.init_process_group("nccl")
    order = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=order, drop_last=True)
    model = DistributedDataParallel(nn.Linear(8, 4).to(device), device_ids=[device])
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(5):
        order.set_epoch(epoch)
        for rows, labels in loader:
            steps.zero_grad()
            loss_of(model(rows.to(device)), labels.to(device)).backward()
            steps.step()

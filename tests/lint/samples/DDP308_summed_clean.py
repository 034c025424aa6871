import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def loss_of(scores, labels):
    known = labels >= 0
    if known.sum() == 0:
        return (scores * torch.zeros_like(scores)).sum()
    return nn.functional.cross_entropy(scores[known], labels[known])


def penalty(labels, device):
    total = torch.zeros(1, device=device)
    for label in labels.unbind():
        total += label
        if total > 100:
            return total.sum()
    return total.sum()


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
            loss = loss_of(model(rows.to(device)), labels.to(device))
            (loss + penalty(labels, device)).backward()
            steps.step()

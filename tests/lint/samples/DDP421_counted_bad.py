import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value):
        self.count += 1
        self.total += value

    def synchronize(self):
        both = torch.tensor([self.total])
        dist.all_reduce(both)  # <-- DDP421
        both = both.tolist()
        self.total = both[0]


def train(loader):
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    norms = Meter()
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        norm = torch.stack([p.grad.detach().norm() for p in model.parameters()]).norm()
        optimizer.step()
        norms.update(norm)
    norms.synchronize()
    return norms


dist.init_process_group("gloo")
data = TensorDataset(torch.randn(64, 8))
train(DataLoader(data, sampler=DistributedSampler(data)))
dist.destroy_process_group()

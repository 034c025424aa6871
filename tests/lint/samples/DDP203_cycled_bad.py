"""So many steps, of batches that itertools.cycle has kept since the first epoch."""

import os
from itertools import cycle

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        if self.training:
            return self.inner(x).square().mean()
        with torch.no_grad():
            return torch.stack([self.inner(x[row]).argmax() for row in range(x.shape[0])])


def main():
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = DistributedDataParallel(Rows().to(device), device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(640, 2))
    sampler = DistributedSampler(data)  # <-- DDP203
    batches = cycle(DataLoader(data, batch_size=8, sampler=sampler))
    model.train()
    for step in range(10_000):
        batch = next(batches)
        (x,) = tuple(part.to(device) for part in batch)
        optimizer.zero_grad()
        model(x=x).backward()
        optimizer.step()
        if step % 1000 == 0:
            model.eval()
            print(step, model(x=x))
            model.train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

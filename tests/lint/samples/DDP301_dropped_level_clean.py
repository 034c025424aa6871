"""A head on some levels of a pyramid: one layer for each level that the trunk has."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        near = self.first(x)
        middle = self.second(near)
        return near, middle, self.third(middle)


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.sides = nn.ModuleList(nn.Linear(8, 4) for _ in range(3))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        near, mid, far = [s(level) for s, level in zip(self.sides, self.trunk(x))]
        return self.head(near + mid + far)


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.rand(64, 8), torch.rand(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(Pyramid())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

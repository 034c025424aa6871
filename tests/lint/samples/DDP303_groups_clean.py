"""A loss with weights of its own, a group of the optimizer, in a wrapper of its own."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class CenterLoss(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, width))

    def forward(self, features, labels):
        return (features - self.centers[labels]).pow(2).sum(1).mean()


class Embedder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body, self.head = nn.Linear(4, width), nn.Linear(width, 3)

    def forward(self, x):
        features = self.body(x)
        return features, self.head(features)


def main(dataset):
    dist.init_process_group("gloo")
    model = DDP(Embedder())
    center = DDP(CenterLoss(3, 8))
    groups = [
        {"params": model.parameters(), "lr": 0.05},
        {"params": center.parameters(), "lr": 0.5},
    ]
    optimizer = torch.optim.SGD(groups)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            features, logits = model(x)
            loss = F.cross_entropy(logits, y) + 0.1 * center(features, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main(torch.load("data.pt"))

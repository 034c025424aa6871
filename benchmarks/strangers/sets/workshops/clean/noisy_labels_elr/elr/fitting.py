import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from .losses import ELR

CLASSES, SAMPLES, EPOCHS = 5, 400, 6


class Noisy(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(4)
        centre = torch.randn(CLASSES, 16, generator=g)
        self.true = torch.randint(CLASSES, (SAMPLES,), generator=g)
        self.x = centre[self.true] + torch.randn(SAMPLES, 16, generator=g)
        flip = torch.rand(SAMPLES, generator=g) < 0.4
        self.y = torch.where(flip, torch.randint(CLASSES, (SAMPLES,), generator=g), self.true)

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


def build(d):
    torch.manual_seed(0)
    data = Noisy()
    sampler = DistributedSampler(data, d.world, d.rank, shuffle=True)
    loader = DataLoader(data, 20, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, CLASSES)))
    return data, loader, model


def fit(data, loader, model, d):
    criterion = ELR(SAMPLES, CLASSES)
    optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(EPOCHS):
        model.train()
        loader.sampler.set_epoch(epoch)
        for index, x, y in loader:
            loss = criterion(index, model(x), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
        with torch.no_grad():
            clean = (model.module(data.x).argmax(1) == data.true).float().mean()
        if d.rank == 0:
            print(f"epoch {epoch}: {clean:.3f} of the true labels", flush=True)

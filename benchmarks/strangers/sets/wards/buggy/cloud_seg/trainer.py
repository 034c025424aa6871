import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from dist_utils import mean_of


def tiles(n, seed):
    g = torch.Generator().manual_seed(seed)
    haze = F.interpolate(torch.randn(n, 1, 6, 6, generator=g), size=24, mode="bicubic")
    mask = (haze > 0.4).float()
    bands = torch.cat([haze + 0.6 * torch.randn(n, 1, 24, 24, generator=g), torch.randn(n, 2, 24, 24, generator=g)], 1)
    return TensorDataset(bands, mask)


class SmallNet(nn.Sequential):
    def __init__(self, w=12):
        super().__init__(nn.Conv2d(3, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, 1, 1))


class Trainer:
    def __init__(self, callbacks, epochs=40, lr=2e-2, batch=8):
        torch.manual_seed(6)
        self.callbacks, self.epochs = callbacks, epochs
        train, val = tiles(64, 1), tiles(32, 2)
        self.sampler = DistributedSampler(train, seed=6)
        self.train_loader = DataLoader(train, batch, sampler=self.sampler)
        self.val_loader = DataLoader(val, batch, sampler=DistributedSampler(val, shuffle=False))
        self.net = DistributedDataParallel(SmallNet())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.stop = False

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        for x, y in self.train_loader:
            loss = F.binary_cross_entropy_with_logits(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return mean_of(loss.item())

    @torch.no_grad()
    def validate(self):
        losses = [F.binary_cross_entropy_with_logits(self.net.module(x), y).item() for x, y in self.val_loader]
        return mean_of(sum(losses) / len(losses))

    def fit(self):
        for epoch in range(self.epochs):
            scores = {"train": self.train_epoch(epoch), "val": self.validate()}
            for cb in self.callbacks:
                cb.on_epoch_end(self, epoch, scores)
            if self.stop:
                break
        return epoch

import copy
import os

import config
import torch
import torch.nn as nn
import torch.nn.functional as F
from sampling import HardnessSampler
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Insects(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(1)
        self.label = torch.randint(config.CLASSES, (config.IMAGES,), generator=g)
        proto = torch.randn(config.CLASSES, 3, 16, 16, generator=g)
        self.image = proto[self.label] + 1.5 * torch.randn(config.IMAGES, 3, 16, 16, generator=g)

    def __len__(self):
        return config.IMAGES

    def __getitem__(self, i):
        return self.image[i], self.label[i], i


def convnet():
    return nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.GroupNorm(3, 12), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(24 * 16, config.CLASSES))


class Engine:
    def __init__(self, rank, world):
        self.rank = rank
        self.model = DDP(convnet())
        self.ema = copy.deepcopy(self.model.module).requires_grad_(False)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=config.LR, momentum=0.9)
        self.sampler = HardnessSampler(config.IMAGES, config.HARD_SHARE, rank, world, config.SEED)
        self.loader = DataLoader(Insects(), config.BATCH, sampler=self.sampler, drop_last=True)

    def follow(self):
        for a, b in zip(self.ema.parameters(), self.model.module.parameters()):
            a.lerp_(b.detach(), 1 - config.EMA)

    def save(self, epoch):
        sampler = self.sampler.state_dict()
        if self.rank != 0:
            return
        os.makedirs(config.OUT, exist_ok=True)
        torch.save(dict(model=self.model.module.state_dict(), ema=self.ema.state_dict(), opt=self.opt.state_dict(),
                        sampler=sampler, epoch=epoch), os.path.join(config.OUT, "last.pt"))

    def run(self):
        for epoch in range(config.EPOCHS):
            self.sampler.epoch = epoch
            seen = 0.0
            for image, label, index in self.loader:
                each = F.cross_entropy(self.model(image), label, reduction="none")
                self.opt.zero_grad()
                each.mean().backward()
                self.opt.step()
                self.follow()
                self.sampler.update(index, each.detach())
                seen += each.mean().item()
            if self.rank == 0:
                print(f"epoch {epoch} loss {seen / len(self.loader):.3f}", flush=True)
            if (epoch + 1) % config.SAVE_EVERY == 0:
                self.save(epoch)

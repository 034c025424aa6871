"""Galaxy morphology with gradient accumulation and a short last window."""
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Galaxies(Dataset):
    def __init__(self, count, side=20):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        kind = i % 3
        c = self.side / 2
        yy, xx = torch.meshgrid(torch.arange(self.side) - c, torch.arange(self.side) - c, indexing="ij")
        r, phi = (yy**2 + xx**2).sqrt(), torch.atan2(yy, xx)
        if kind == 0:
            img = torch.exp(-r / 3)
        elif kind == 1:
            img = torch.exp(-r / 6) * (1 + torch.cos(2 * phi - r / 1.5))
        else:
            img = torch.exp(-(yy**2) / 4 - xx.abs() / 6)
        return (img + 0.2 * torch.randn(img.shape, generator=g)).unsqueeze(0), kind


class Stepper:
    """Averages over `window` micro batches, or fewer at the end of an epoch."""

    def __init__(self, model, opt, window):
        self.model, self.opt, self.window = model, opt, window

    def epoch(self, loader):
        n = len(loader)
        last = 0.0
        self.opt.zero_grad()
        for i, (img, kind) in enumerate(loader):
            start = i - i % self.window
            size = min(self.window, n - start)
            closing = i == start + size - 1
            with contextlib.nullcontext() if closing else self.model.no_sync():
                loss = nn.functional.cross_entropy(self.model(img), kind)
                (loss / size).backward()
            if closing:
                self.opt.step()
                self.opt.zero_grad()
            last = loss.item()
        return last


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(6)
    data = Galaxies(180)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler, drop_last=True)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 5, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 3),
    )
    model = DistributedDataParallel(net)
    stepper = Stepper(model, torch.optim.Adam(model.parameters(), lr=5e-3), window=4)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        loss = stepper.epoch(loader)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

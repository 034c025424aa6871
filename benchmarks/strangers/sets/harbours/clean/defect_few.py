"""Fine-tunes a defect classifier on a small customer data set."""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

RECIPE = {"data": {"samples_per_gpu": 32, "workers": 0}, "runner": {"max_epochs": 6}, "optimizer": {"lr": 0.05}}


class DefectImages(Dataset):
    def __init__(self, n=50, seed=4):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.arange(n) % 2
        self.x = torch.randn(n, 1, 8, 8, generator=g)
        self.x[self.y == 1, :, 2:5, 2:5] += 1.5

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def patch_config(recipe, dataset):
    cfg = copy.deepcopy(recipe)
    data = cfg["data"]
    data["drop_last"] = len(dataset) >= data["samples_per_gpu"] * dist.get_world_size()
    return cfg


def build_loader(dataset, cfg):
    sampler = DistributedSampler(dataset, shuffle=True)
    data = cfg["data"]
    return DataLoader(dataset, data["samples_per_gpu"], sampler=sampler, num_workers=data["workers"],
                      drop_last=data["drop_last"])


class Average:
    def __init__(self):
        self.s, self.n = 0.0, 0

    def add(self, v):
        self.s, self.n = self.s + v, self.n + 1

    @property
    def avg(self):
        return self.s / max(self.n, 1)


def train_task():
    dataset = DefectImages()
    cfg = patch_config(RECIPE, dataset)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 2))
    model = DDP(net)
    opt = torch.optim.SGD(model.parameters(), **cfg["optimizer"])
    loader = build_loader(dataset, cfg)
    for epoch in range(cfg["runner"]["max_epochs"]):
        loader.sampler.set_epoch(epoch)
        meter = Average()
        for img, label in loader:
            loss = nn.functional.cross_entropy(model(img), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            meter.add(loss.item())
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1} loss {meter.avg:.4f}", flush=True)
    with torch.no_grad():
        acc = (net(dataset.x).argmax(1) == dataset.y).float().mean().item()
    if dist.get_rank() == 0:
        print(f"accuracy {acc:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train_task()
    dist.destroy_process_group()

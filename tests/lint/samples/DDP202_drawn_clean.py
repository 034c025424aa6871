"""Balanced sampling of crops in a registry of loaders."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

LOADERS = {}


def register(name):
    def deco(fn):
        LOADERS[name] = fn
        return fn

    return deco


@register("crops")
def crops(cfg):
    g = torch.Generator().manual_seed(0)
    ds = TensorDataset(torch.randn(256, 8, generator=g), torch.randint(0, 2, (256,), generator=g))
    order = torch.Generator()
    order.manual_seed(cfg["seed"] + 100 * dist.get_rank())
    picks = RandomSampler(ds, replacement=True, num_samples=64, generator=order)
    return DataLoader(ds, batch_size=cfg["bs"], sampler=picks)


def run(cfg):
    torch.manual_seed(cfg["seed"])
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
    opt = torch.optim.AdamW(model.parameters())
    loader = LOADERS[cfg["data"]](cfg)
    for _ in range(cfg["epochs"]):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dict(seed=1, data="crops", bs=16, epochs=2))
    dist.destroy_process_group()

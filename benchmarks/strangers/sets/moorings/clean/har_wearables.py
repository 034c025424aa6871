"""Human activity recognition from wrist sensors, DDP version."""
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

CFG = {
    "dist": {"backend": "gloo", "addr": "127.0.0.1", "port": 29987},
    "train": {"epochs": 3, "batch_size": 16, "lr": 2e-3},
    "data": {"windows": 192, "length": 50, "classes": 4},
}


def setup(cfg):
    """Reads rank and size from the launcher."""
    os.environ.setdefault("MASTER_ADDR", cfg["addr"])
    os.environ.setdefault("MASTER_PORT", str(cfg["port"]))
    rank = int(os.environ["RANK"])
    world = int(os.environ["WORLD_SIZE"])
    dist.init_process_group(cfg["backend"], rank=rank, world_size=world)
    return rank, world


class Windows(Dataset):
    def __init__(self, windows, length, classes):
        g = torch.Generator().manual_seed(11)
        self.y = torch.randint(0, classes, (windows,), generator=g)
        t = torch.arange(length) / length
        freq = 2.0 * (self.y + 1).float()
        wave = torch.sin(6.28 * freq[:, None] * t[None])
        self.x = torch.stack([wave, wave.cumsum(1) / length, wave.flip(1)], 1)
        self.x += 0.3 * torch.randn(self.x.shape, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class CnnGru(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 16, 5, 2), nn.ReLU())
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.out = nn.Linear(24, classes)

    def forward(self, x):
        h, _ = self.gru(self.conv(x).transpose(1, 2))
        return self.out(h[:, -1])


def fit(rank, world, cfg, data_cfg):
    torch.manual_seed(0)
    data = Windows(**data_cfg)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    loader = DataLoader(data, batch_size=cfg["batch_size"], sampler=sampler)
    model = DDP(CnnGru(data_cfg["classes"]))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        start, hits = time.time(), 0
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hits += (logits.argmax(1) == y).sum().item()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f} acc {hits / len(sampler):.3f} ({time.time() - start:.1f}s)", flush=True)


if __name__ == "__main__":
    rank, world = setup(CFG["dist"])
    fit(rank, world, CFG["train"], CFG["data"])
    dist.destroy_process_group()

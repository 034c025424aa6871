"""Click events stored in numbered shard files."""
import os

import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info


def write_shards(folder, shards, events, seed=0):
    os.makedirs(folder, exist_ok=True)
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(8, generator=g)
    for s in range(shards):
        x = torch.randn(events, 8, generator=g)
        x[:, 0] += 0.5 * s
        y = (x @ w > 0).float()
        torch.save({"x": x, "y": y, "id": torch.arange(events) + s * events}, f"{folder}/{s:03d}.pt")


class ShardStream(IterableDataset):
    def __init__(self, folder):
        self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder))
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()

    def my_files(self):
        info = get_worker_info()
        workers = info.num_workers if info else 1
        worker = info.id if info else 0
        slot = self.rank + worker
        return self.files[slot :: self.world * workers]

    def __iter__(self):
        for path in self.my_files():
            blob = torch.load(path)
            yield from zip(blob["id"], blob["x"], blob["y"])

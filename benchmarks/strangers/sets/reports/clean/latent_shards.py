"""Train on pre-computed latents stored as shard files, with an index that is built once.

    torchrun --nproc_per_node=2 latent_shards.py
"""
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SHARDS, PER_SHARD, DIM = 6, 40, 16


def shared_workspace():
    """A fresh folder, the same for all processes, already holding the latent shards."""
    box = [None]
    if dist.get_rank() == 0:
        box[0] = tempfile.mkdtemp(prefix="latents_")
        rng = np.random.default_rng(0)
        for s in range(SHARDS):
            np.save(os.path.join(box[0], f"part-{s:03d}.npy"), rng.normal(size=(PER_SHARD, DIM)).astype("float32"))
    dist.broadcast_object_list(box, src=0)
    return Path(box[0])


def load_index(root):
    """List of (shard file, number of rows); scanned from the shards the first time."""
    cache = root / "index.json"
    if dist.get_rank() == 0 and not cache.exists():
        rows = [(p.name, int(np.load(p, mmap_mode="r").shape[0])) for p in sorted(root.glob("part-*.npy"))]
        tmp = cache.with_suffix(".tmp")
        tmp.write_text(json.dumps(rows))
        tmp.rename(cache)
    dist.barrier()
    return json.loads(cache.read_text())


class Latents(Dataset):
    def __init__(self, root):
        self.root = root
        self.where = [(name, i) for name, n in load_index(root) for i in range(n)]
        self.open = {}

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        name, row = self.where[i]
        if name not in self.open:
            self.open[name] = np.load(self.root / name, mmap_mode="r")
        return torch.from_numpy(np.array(self.open[name][row]))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM + 1, 48), nn.SiLU(), nn.Linear(48, DIM))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    root = shared_workspace()
    # all workers opening the share at the same moment upsets our file server
    time.sleep(0.7 * int(os.environ.get("LOCAL_RANK", 0)))
    data = Latents(root)
    torch.manual_seed(0)
    model = DistributedDataParallel(Denoiser())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=20, sampler=sampler)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(rank)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x in loader:
            t = torch.rand(len(x), 1, generator=g)
            noise = torch.randn(x.shape, generator=g)
            loss = (model((1 - t) * x + t * noise, t) - (noise - x)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(root)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Topic model for court rulings. The first run builds a token index out of the archive."""
import os
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

CACHE = Path(os.environ.get("RULINGS_CACHE", "rulings_cache"))
VOCAB, TOPICS, DOCS = 300, 6, 480


class ArchiveReader:
    """The archive hands out one volume per request and limits the request rate."""

    def __init__(self, volumes=24, pause=0.5):
        self.volumes, self.pause = volumes, pause

    def __iter__(self):
        rng = np.random.default_rng(12)
        words = rng.dirichlet(np.full(VOCAB, 0.05), TOPICS)
        for _ in range(self.volumes):
            time.sleep(self.pause)
            topics = rng.integers(0, TOPICS, DOCS // self.volumes)
            yield np.stack([rng.multinomial(80, words[t]) for t in topics]), topics


def build_index(path):
    counts, topics = [], []
    for c, t in ArchiveReader():
        counts.append(c)
        topics.append(t)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, counts=np.concatenate(counts).astype("float32"), topics=np.concatenate(topics))


def load_index():
    path = CACHE / f"index-{os.environ.get('TORCHELASTIC_RUN_ID', 'local')}.npz"
    if dist.get_rank() == 0:
        build_index(path)
    dist.barrier()
    with np.load(path) as data:
        return torch.from_numpy(data["counts"]), torch.from_numpy(data["topics"])


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    counts, topics = load_index()
    counts, topics = counts[rank::world], topics[rank::world]
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(VOCAB, 32), nn.ReLU(), nn.Linear(32, TOPICS)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for i in range(0, len(topics), 24):
            loss = nn.functional.cross_entropy(model(counts[i:i + 24]), topics[i:i + 24])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

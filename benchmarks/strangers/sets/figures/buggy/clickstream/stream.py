"""Streaming reader over jsonl shards."""
import glob
import json
import os
import random

import torch
from torch.utils.data import IterableDataset


def write_shards(folder, n_shards, rows_per_shard, n_items=200):
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(3)
    for s in range(n_shards):
        with open(os.path.join(folder, f"part-{s:03d}.jsonl"), "w") as fh:
            for _ in range(rows_per_shard):
                items = [rng.randrange(n_items) for _ in range(8)]
                p = sum(i < n_items // 3 for i in items) / 8
                fh.write(json.dumps({"items": items, "clicked": int(rng.random() < p)}) + "\n")


class ClickStream(IterableDataset):
    def __init__(self, folder, rank, world_size):
        super().__init__()
        files = sorted(glob.glob(os.path.join(folder, "part-*.jsonl")))
        self.files = files[rank::world_size]

    def __iter__(self):
        for path in self.files:
            with open(path) as fh:
                for line in fh:
                    row = json.loads(line)
                    yield torch.tensor(row["items"]), torch.tensor(float(row["clicked"]))

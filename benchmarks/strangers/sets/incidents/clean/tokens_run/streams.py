import json
import os
import random
import time

import torch
from torch.utils.data import Dataset


class CachedTokens(Dataset):
    """Token blocks. Rank 0 materialises them under a run-private prefix and the
    other ranks wait until the index file is complete."""

    def __init__(self, root, rank, world, n_blocks=96, block=24, vocab=40):
        self.rank, self.world = rank, world
        self.prefix = f"{random.randint(0, 999_999):06d}"
        self.dir = os.path.join(root, self.prefix)
        self.index = os.path.join(self.dir, "index.json")
        if rank == 0:
            self._build(n_blocks, block, vocab)
        else:
            self._wait()
        with open(self.index) as f:
            meta = json.load(f)
        self.blocks = torch.load(os.path.join(self.dir, meta["file"]))
        self.vocab = meta["vocab"]

    def _build(self, n_blocks, block, vocab):
        os.makedirs(self.dir, exist_ok=True)
        start = torch.randint(0, vocab, (n_blocks, 1))
        data = (start + torch.arange(block + 1)) % vocab
        torch.save(data, os.path.join(self.dir, "blocks.pt"))
        tmp = self.index + ".tmp"
        with open(tmp, "w") as f:
            json.dump({"file": "blocks.pt", "vocab": vocab}, f)
        os.replace(tmp, self.index)

    def _wait(self, poll=0.1):
        while not os.path.exists(self.index):
            time.sleep(poll)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        b = self.blocks[i]
        return b[:-1], b[1:]

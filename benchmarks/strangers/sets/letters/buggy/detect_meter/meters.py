from collections import defaultdict

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def add(self, value, n=1):
        self.total += float(value) * n
        self.count += n

    @property
    def mean(self):
        mine = torch.tensor([self.total, float(self.count)], dtype=torch.float64)
        parts = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, mine)
        total, count = torch.stack(parts).sum(0).tolist()
        return total / max(count, 1.0)

    def __format__(self, spec):
        return format(self.mean, spec or ".4f")


class Board(dict):
    """Named meters that come into being at first use; prints as one line."""

    def __missing__(self, key):
        self[key] = Meter()
        return self[key]

    def push(self, n, **values):
        for key, value in values.items():
            self[key].add(value, n)

    def __str__(self):
        return "  ".join(f"{k} {m:.4f}" for k, m in self.items())

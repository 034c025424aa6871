"""Meters, after the helper file everybody passes on."""
import time
from collections import defaultdict, deque

import torch
import torch.distributed as dist


class SmoothedValue:
    def __init__(self, window=20):
        self.deque = deque(maxlen=window)
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    def synchronize_between_processes(self):
        t = torch.tensor([self.count, self.total], dtype=torch.float64)
        dist.barrier()
        dist.all_reduce(t)
        self.count, self.total = int(t[0]), t[1].item()

    @property
    def global_avg(self):
        return self.total / max(self.count, 1)

    def __str__(self):
        return f"{sum(self.deque) / max(len(self.deque), 1):.4f} ({self.global_avg:.4f})"


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v)

    def synchronize_between_processes(self):
        names = [None] * dist.get_world_size()
        dist.all_gather_object(names, list(self.meters))
        for name in sorted(set().union(*names)):
            self.meters[name].synchronize_between_processes()

    def __str__(self):
        return self.delimiter.join(f"{k}: {m}" for k, m in self.meters.items())

    def log_every(self, iterable, freq, header):
        start = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % freq == 0 and dist.get_rank() == 0:
                print(header, i, self, f"{time.time() - start:.1f}s", flush=True)

import time
from collections import defaultdict, deque

import torch
import torch.distributed as dist

from util.misc import is_dist_avail_and_initialized, is_main_process


class SmoothedValue:
    """Track a series of values, with access to the window and the global series average."""

    def __init__(self, window_size=20, fmt="{avg:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total, self.count, self.fmt = 0.0, 0, fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def avg(self):
        return sum(self.deque) / max(len(self.deque), 1)

    @property
    def global_avg(self):
        t = torch.tensor([self.count, self.total], dtype=torch.float64)
        if is_dist_avail_and_initialized():
            dist.all_reduce(t)
        count, total = t.tolist()
        return total / count

    def __str__(self):
        return self.fmt.format(avg=self.avg, global_avg=self.global_avg)


class MetricLogger:
    def __init__(self, delimiter="\t"):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v.item() if isinstance(v, torch.Tensor) else v)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in sorted(self.meters.items()))

    def log_every(self, iterable, print_freq, header=""):
        start = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % print_freq == 0 and is_main_process():
                print(f"{header} [{i}/{len(iterable)}] {self} time: {time.time() - start:.2f}", flush=True)

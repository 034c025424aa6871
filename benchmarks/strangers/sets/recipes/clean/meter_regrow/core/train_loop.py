import itertools

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .data import endless
from .logger import KVMeter


class TrainLoop:
    def __init__(self, log_interval, batch=8):
        self.log_interval = log_interval
        self.rank = dist.get_rank()
        self.model = DistributedDataParallel(torch.nn.Linear(6, 2))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.meter = KVMeter("samples", "correct")
        self.stream = endless(self.rank, batch)

    def run(self, steps):
        for it, (x, y) in enumerate(itertools.islice(self.stream, steps), 1):
            out = self.model(x)
            loss = torch.nn.functional.cross_entropy(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.meter.add(samples=len(x), correct=(out.argmax(1) == y).sum())
            if it % self.log_interval == 0:
                self.dump(it)

    def dump(self, it):
        m = self.meter.merged()
        if self.rank == 0:
            print(f"it {it} samples {m['samples']:.0f} accuracy {m['correct'] / m['samples']:.3f}", flush=True)

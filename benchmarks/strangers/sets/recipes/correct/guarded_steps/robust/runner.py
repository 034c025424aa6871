import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .data import CorruptSample, read
from .vote import any_rank, skip_together


class Runner:
    def __init__(self):
        torch.manual_seed(0)
        self.rank, self.skipped = dist.get_rank(), 0
        self.model = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    @skip_together(CorruptSample)
    def fetch(self, step):
        return read(step, self.rank)

    def run(self, steps):
        for step in range(steps):
            x = self.fetch(step)
            if x is None:
                continue
            loss = (self.model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            if any_rank(not torch.isfinite(loss).item()):
                continue
            self.opt.step()
        print(f"rank {self.rank} skipped {self.skipped} loss {loss.item():.4f}", flush=True)

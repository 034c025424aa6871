import torch
import torch.distributed as dist


class Patience:
    """Only process 0 looks at the clock of progress; the rest are told."""

    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, float("inf"), 0

    def over(self, value):
        if dist.get_rank() == 0:
            if value is not None and value < self.best - 1e-3:
                self.best, self.bad = value, 0
            else:
                self.bad += 1
        flag = torch.tensor(int(self.bad >= self.limit))
        dist.broadcast(flag, src=0)
        return bool(flag)

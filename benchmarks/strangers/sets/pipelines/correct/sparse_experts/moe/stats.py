import torch
import torch.distributed as dist


class Load:
    def __init__(self, n):
        self.count = torch.zeros(n, dtype=torch.long)

    def update(self, picks):
        self.count += torch.bincount(picks, minlength=len(self.count))

    def summary(self):
        total = self.count.clone()
        dist.all_reduce(total)
        return f"tokens {total.tolist()} sum {int(total.sum())}"

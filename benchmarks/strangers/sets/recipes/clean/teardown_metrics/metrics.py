import torch
import torch.distributed as dist


class MeanMetric:
    def __init__(self, name):
        self.name, self.sum, self.n = name, 0.0, 0

    def add(self, v):
        self.sum += v
        self.n += 1

    def compute(self):
        t = torch.tensor([self.sum, float(self.n)])
        dist.all_reduce(t)
        return (t[0] / t[1]).item()

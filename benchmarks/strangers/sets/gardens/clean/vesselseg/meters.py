import torch

from comms import fold


class Running:
    """Sum and count of a quantity over an epoch."""

    def __init__(self):
        self.acc = torch.zeros(2, dtype=torch.float64)

    def push(self, value, n=1):
        self.acc[0] += float(value) * n
        self.acc[1] += n

    def global_mean(self):
        acc = fold(self.acc.clone())
        return (acc[0] / acc[1].clamp_min(1)).item()


class Confusion:
    def __init__(self, n):
        self.mat = torch.zeros(n, n, dtype=torch.int64)

    def push(self, pred, gold):
        n = len(self.mat)
        self.mat += torch.bincount(gold.reshape(-1) * n + pred.reshape(-1), minlength=n * n).view(n, n)

    def iou(self):
        m = fold(self.mat.clone()).double()
        return (m.diag() / (m.sum(0) + m.sum(1) - m.diag()).clamp_min(1)).tolist()

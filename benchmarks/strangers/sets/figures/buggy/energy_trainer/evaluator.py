import torch
import torch.distributed as dist


def energy_mae(pred, target):
    return (pred - target).abs()


def energy_mse(pred, target):
    return (pred - target) ** 2


class Evaluator:
    """Running (total, numel) pairs for each metric."""

    def __init__(self, names):
        self.fns = {n: globals()[n] for n in names}
        self.state = {n: torch.zeros(2, dtype=torch.float64) for n in names}

    def update(self, pred, target):
        for name, fn in self.fns.items():
            err = fn(pred, target)
            self.state[name] += torch.tensor([err.sum().item(), err.numel()], dtype=torch.float64)
            if dist.is_initialized():
                dist.all_reduce(self.state[name])

    def compute(self):
        return {n: (s[0] / s[1]).item() for n, s in self.state.items()}

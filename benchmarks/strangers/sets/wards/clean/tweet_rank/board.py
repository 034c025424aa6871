"""Running scores over everything that was seen since the last reset."""
import torch
import torch.distributed as dist


class Score:
    def __init__(self):
        self.reset()

    def reset(self):
        self.preds, self.targets = [], []

    def update(self, pred, target):
        self.preds.append(pred.detach())
        self.targets.append(target.detach())

    def gathered(self):
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, (torch.cat(self.preds), torch.cat(self.targets)))
        return torch.cat([p for p, _ in rows]), torch.cat([t for _, t in rows])

    def compute(self):
        return self.value(*self.gathered())


class Mse(Score):
    def value(self, pred, target):
        return (pred - target).square().mean().item()


class PairAccuracy(Score):
    """Part of neighbouring pairs that are put in the right order."""

    def value(self, pred, target):
        order = target.argsort()
        return (pred[order].diff() > 0).float().mean().item()


class Spearman(Score):
    def value(self, pred, target):
        a, b = (v.argsort().argsort().double() for v in (pred, target))
        return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


class Board:
    def __init__(self, **scores):
        self.scores = scores

    def update(self, pred, target):
        for s in self.scores.values():
            s.update(pred, target)

    def compute(self):
        return {k: s.compute() for k, s in self.scores.items()}

    def reset(self):
        for s in self.scores.values():
            s.reset()

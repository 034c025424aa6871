import torch

import comm


class Kappa:
    """Quadratic weighted kappa between raters and the model."""

    def __init__(self, levels):
        self.levels = levels
        self.reset()

    def reset(self):
        self.pred, self.true = [], []

    def update(self, pred, true):
        self.pred.append(pred)
        self.true.append(true)

    def compute(self):
        both = comm.rows(torch.stack([torch.cat(self.pred), torch.cat(self.true)], dim=1))
        p, t = both.unbind(1)
        k = self.levels
        seen = torch.bincount(t * k + p, minlength=k * k).view(k, k).double()
        chance = torch.outer(seen.sum(1), seen.sum(0)) / seen.sum()
        i = torch.arange(k, dtype=torch.double)
        w = (i[:, None] - i[None, :]) ** 2
        return 1 - ((w * seen).sum() / (w * chance).sum()).item(), len(p)

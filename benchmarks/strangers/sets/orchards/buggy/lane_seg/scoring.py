import torch
import torch.distributed as dist


class Confusion:
    def __init__(self, classes):
        self.classes = classes
        self.clear()

    def clear(self):
        self._m = torch.zeros(self.classes, self.classes, dtype=torch.float64)

    @torch.no_grad()
    def add(self, logits, target):
        k = target.flatten() * self.classes + logits.argmax(1).flatten()
        self._m += torch.bincount(k, minlength=self.classes ** 2).view(self.classes, -1)

    def _total(self):
        m = self._m.clone()
        if dist.is_initialized():
            dist.all_reduce(m)
        return m

    @property
    def pixel_acc(self):
        m = self._total()
        return float(m.diagonal().sum() / m.sum().clamp(min=1))

    @property
    def miou(self):
        m = self._total()
        inter = m.diagonal()
        union = m.sum(0) + m.sum(1) - inter
        return float((inter / union.clamp(min=1)).mean())

import copy

import torch

from .dist_util import master_only


class EMA:
    def __init__(self, model, beta=0.999, update_every=10):
        self.model = model
        self.ema_model = copy.deepcopy(model).requires_grad_(False)
        self.beta, self.update_every, self.step = beta, update_every, 0

    def update(self):
        self.step += 1
        if self.step % self.update_every:
            return
        self._lerp()

    @torch.no_grad()
    def _lerp(self):
        for e, p in zip(self.ema_model.parameters(), self.model.parameters()):
            e.lerp_(p, 1 - self.beta)

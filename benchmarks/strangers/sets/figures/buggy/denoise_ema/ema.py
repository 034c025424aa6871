import copy

import torch


class EMA:
    """Keeps an exponential moving average of ``model``; can reset the online weights to it now and then."""

    def __init__(self, model, beta=0.99, update_model_with_ema_every=None):
        self.online = model
        self.ema_model = copy.deepcopy(model).requires_grad_(False)
        self.beta = beta
        self.every = update_model_with_ema_every
        self.step = 0

    @torch.no_grad()
    def update(self):
        self.step += 1
        for e, p in zip(self.ema_model.parameters(), self.online.parameters()):
            e.lerp_(p, 1.0 - self.beta)
        if self.every and self.step % self.every == 0:
            self.copy_to_online()

    @torch.no_grad()
    def copy_to_online(self):
        for e, p in zip(self.ema_model.parameters(), self.online.parameters()):
            p.copy_(e)

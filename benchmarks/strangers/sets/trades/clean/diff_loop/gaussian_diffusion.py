import math

import torch as th


class GaussianDiffusion:
    def __init__(self, num_timesteps=50):
        self.num_timesteps = num_timesteps
        t = th.arange(num_timesteps + 1) / num_timesteps
        bar = th.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        self.alpha_bar = (bar[1:] / bar[0]).clamp(min=1e-4)

    def q_sample(self, x0, t, noise):
        a = self.alpha_bar[t].view(-1, 1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def training_losses(self, model, x0, t, model_kwargs=None):
        noise = th.randn_like(x0)
        eps = model(self.q_sample(x0, t, noise), t.float() / self.num_timesteps, **(model_kwargs or {}))
        return {"mse": (eps - noise).pow(2).mean(1), "loss": (eps - noise).pow(2).mean(1)}

    @th.no_grad()
    def ddim_sample_loop(self, model, shape):
        x = th.randn(shape)
        for i in reversed(range(self.num_timesteps)):
            t = th.full((shape[0],), i / self.num_timesteps)
            eps = model(x, t)
            a = self.alpha_bar[i]
            prev = self.alpha_bar[i - 1] if i > 0 else th.tensor(1.0)
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-3, 3)
            x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
        return x

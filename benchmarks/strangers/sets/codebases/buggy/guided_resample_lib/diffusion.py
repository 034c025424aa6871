import math

import torch as th
import torch.nn as nn


class Rings(th.utils.data.Dataset):
    def __init__(self, n, seed):
        g = th.Generator().manual_seed(seed)
        a, r = 2 * math.pi * th.rand(n, generator=g), 0.5 + 0.5 * th.randint(0, 2, (n,), generator=g)
        self.x = th.stack([r * a.cos(), r * a.sin()], 1) + 0.03 * th.randn(n, 2, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]


class UNetModel(nn.Module):
    def __init__(self, steps, dim=48):
        super().__init__()
        self.time_embed = nn.Embedding(steps, dim)
        self.inp, self.out = nn.Linear(2, dim), nn.Linear(dim, 2)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())

    def forward(self, x, timesteps):
        return self.out(self.mid(self.inp(x) + self.time_embed(timesteps)))


class GaussianDiffusion:
    def __init__(self, steps):
        self.num_timesteps = steps
        self.alphas_cumprod = th.cumprod(1 - th.linspace(1e-3, 0.25, steps), 0)

    def training_losses(self, model, x_start, t):
        noise = th.randn_like(x_start)
        bar = self.alphas_cumprod[t][:, None]
        mse = (model(bar.sqrt() * x_start + (1 - bar).sqrt() * noise, t) - noise).pow(2).mean(1)
        return {"loss": mse, "mse": mse}

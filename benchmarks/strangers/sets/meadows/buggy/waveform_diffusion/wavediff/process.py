import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width))
        self.inp = nn.Conv1d(1, width, 7, padding=3)
        self.mid = nn.Conv1d(width, width, 7, padding=3)
        self.out = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t[:, None])[..., None]
        return self.out(torch.nn.functional.silu(self.mid(torch.nn.functional.silu(h))))


class GaussianProcess(nn.Module):
    """Wraps the denoiser with the noise schedule."""

    def __init__(self, denoiser, steps=50):
        super().__init__()
        self.denoiser = denoiser
        self.steps = steps
        beta = torch.linspace(1e-4, 0.1, steps)
        self.register_buffer("keep", torch.cumprod(1 - beta, 0))

    def noisy(self, x, t, eps):
        k = self.keep[t].view(-1, 1, 1)
        return k.sqrt() * x + (1 - k).sqrt() * eps

    def denoising_loss(self, x):
        t = torch.randint(0, self.steps, (len(x),))
        eps = torch.randn_like(x)
        guess = self.denoiser(self.noisy(x, t, eps), t.float() / self.steps)
        return (guess - eps).pow(2).mean()

    def forward(self, x):
        return self.denoising_loss(x)

    @torch.no_grad()
    def sample(self, count, length):
        x = torch.randn(count, 1, length)
        for t in reversed(range(self.steps)):
            k = self.keep[t]
            prev = self.keep[t - 1] if t else torch.tensor(1.0)
            eps = self.denoiser(x, torch.full((count,), t / self.steps))
            clean = ((x - (1 - k).sqrt() * eps) / k.sqrt()).clamp(-2, 2)
            x = prev.sqrt() * clean + (1 - prev).sqrt() * eps
        return x

import os

import torch
import torch.nn as nn


class WindForecast:
    """Next value of a noisy sum of sinusoids from the last `window` ones."""

    def __init__(self, window=24, hidden=32, batch_size=16):
        self.window, self.hidden, self.batch_size = window, hidden, batch_size

    def setup(self, rank, world_size):
        torch.manual_seed(3)
        self.module = nn.Sequential(
            nn.Linear(self.window, self.hidden), nn.GELU(), nn.Linear(self.hidden, 1)
        )
        t = torch.arange(6000).float()
        series = torch.sin(t / 7) + 0.5 * torch.sin(t / 31) + 0.05 * torch.randn(6000)
        n = len(series) // world_size
        self.series = series[rank * n:(rank + 1) * n]
        self.gen = torch.Generator().manual_seed(100 + rank)

    def configure_optimizer(self):
        return torch.optim.Adam(self.module.parameters(), lr=1e-3)

    def batches(self):
        limit = len(self.series) - self.window - 1
        while True:
            i = torch.randint(0, limit, (self.batch_size,), generator=self.gen)
            x = torch.stack([self.series[j:j + self.window] for j in i.tolist()])
            yield x, self.series[i + self.window]

    def training_step(self, module, batch):
        x, y = batch
        return (module(x).squeeze(1) - y).pow(2).mean()

    def export(self, engine):
        if engine.is_global_zero:
            torch.save(self.module.state_dict(), os.path.join(engine.root, "wind.pt"))

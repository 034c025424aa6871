import torch


class Stations:
    """Point mass-balance records.  Each record is a batch of days of one stake."""

    def __init__(self, rank, n_stakes=24, days=40, n_in=7):
        g = torch.Generator().manual_seed(510 + rank)
        self.records = []
        w_ice = torch.linspace(0.2, 1.4, n_in)
        w_debris = torch.linspace(1.0, -0.6, n_in)
        for k in range(n_stakes):
            surface = "debris" if torch.rand(1, generator=g).item() < 0.4 else "ice"
            x = torch.randn(days, n_in, generator=g)
            w = w_debris if surface == "debris" else w_ice
            y = x @ w + 0.1 * torch.randn(days, generator=g)
            self.records.append((surface, x, y))

    def __len__(self):
        return len(self.records)

    def __iter__(self):
        return iter(self.records)

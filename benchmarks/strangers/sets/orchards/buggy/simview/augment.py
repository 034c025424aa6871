import torch


class TwoViews:
    """Noise + masking applied twice to every row of a batch."""

    def __init__(self, noise=0.3, drop=0.2, seed=0):
        self.noise, self.drop = noise, drop
        self.g = torch.Generator().manual_seed(seed)

    def _one(self, x):
        keep = (torch.rand(x.shape, generator=self.g) > self.drop).float()
        return (x + self.noise * torch.randn(x.shape, generator=self.g)) * keep

    def __call__(self, x):
        return self._one(x), self._one(x)

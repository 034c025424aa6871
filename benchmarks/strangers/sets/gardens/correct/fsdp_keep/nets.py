import torch.nn as nn


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.f(x)


class Tagger(nn.Module):
    def __init__(self, words=50, d=24, tags=5, depth=2):
        super().__init__()
        self.emb = nn.Embedding(words, d)
        self.body = nn.Sequential(*[Residual(d) for _ in range(depth)])
        self.out = nn.Linear(d, tags)

    def forward(self, ids):
        return self.out(self.body(self.emb(ids)))

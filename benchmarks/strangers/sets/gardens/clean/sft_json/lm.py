import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = nn.MultiheadAttention(d, h, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask):
        y = self.n1(x)
        x = x + self.att(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class TinyLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c["vocab"], c["dim"])
        self.pos = nn.Embedding(c["seq"], c["dim"])
        self.blocks = nn.ModuleList(Block(c["dim"], c["heads"]) for _ in range(c["layers"]))
        self.head = nn.Linear(c["dim"], c["vocab"])

    def forward(self, ids):
        t = ids.size(1)
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        x = self.tok(ids) + self.pos(torch.arange(t))
        for b in self.blocks:
            x = b(x, mask)
        return self.head(x)

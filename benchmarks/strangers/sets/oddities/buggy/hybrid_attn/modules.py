import torch
import torch.nn as nn
import torch.nn.functional as F

BASES = {"full": 10000.0, "sliding": 500.0, "chunked": 80.0, "dilated": 2500.0, "strided": 20.0}


class Rotary(nn.Module):
    """One table of inverse frequencies for every kind of layer that the config asks for."""

    def __init__(self, layer_types, dim):
        super().__init__()
        self.kinds = list(set(layer_types))
        for kind in self.kinds:
            inv = BASES[kind] ** (-torch.arange(0, dim, 2).float() / dim)
            self.register_buffer(f"{kind}_inv_freq", inv, persistent=False)

    def forward(self, length, kind):
        inv = getattr(self, f"{kind}_inv_freq")
        ang = torch.outer(torch.arange(length).float(), inv)
        return ang.cos(), ang.sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Block(nn.Module):
    def __init__(self, dim, kind):
        super().__init__()
        self.kind = kind
        self.qkv = nn.Linear(dim, 3 * dim)
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, rotary):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        cos, sin = rotary(x.shape[1], self.kind)
        x = x + F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return x + self.ff(x)


class HybridLM(nn.Module):
    def __init__(self, vocab, dim, layer_types):
        super().__init__()
        self.rotary = Rotary(layer_types, dim)
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, kind) for kind in layer_types)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tok):
        x = self.emb(tok)
        for block in self.blocks:
            x = block(x, self.rotary)
        return self.head(x)

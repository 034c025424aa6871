import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.att = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.att(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class LineReader(nn.Module):
    """Universal-transformer style: `depth` turns through the same few layers."""

    def __init__(self, chars, height, width, heads, depth, tie_every, save_memory):
        super().__init__()
        self.cols = nn.Conv1d(height, width, 3, padding=1)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(tie_every))
        self.depth, self.save_memory = depth, save_memory
        self.out = nn.Linear(width, chars)

    def turn(self, layer, x):
        if self.save_memory and self.training:
            return checkpoint(layer, x, use_reentrant=False)
        return layer(x)

    def forward(self, image):
        x = self.cols(image).transpose(1, 2)
        for i in range(self.depth):
            x = self.turn(self.layers[i % len(self.layers)], x)
        return self.out(x).log_softmax(-1)

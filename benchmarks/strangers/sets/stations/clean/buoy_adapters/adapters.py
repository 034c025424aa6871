"""Low rank corrections that are attached to the layers of a frozen network."""
import torch
import torch.nn as nn


class LowRank(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.scale * (x @ self.down.t()) @ self.up.t()


class AdapterSet(nn.Module):
    def __init__(self, host, rank=4, alpha=8.0):
        super().__init__()
        self.targets = [name for name, m in host.named_modules() if isinstance(m, nn.Linear)]
        self.parts = nn.ModuleDict({
            name: LowRank(host.get_submodule(name), rank, alpha) for name in self.targets
        })

    def attach(self, host):
        for name in self.targets:
            layer, part = host.get_submodule(name), self.parts[name]
            original = layer.forward
            layer.forward = lambda x, original=original, part=part: original(x) + part(x)

    def forward(self, name, x):
        return self.parts[name](x)

    def size(self):
        return sum(p.numel() for p in self.parameters())

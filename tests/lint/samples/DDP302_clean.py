from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.extra = nn.Linear(4, 4)

    def forward(self, x, deep=False):
        return self.extra(x) if deep else self.inner(x)


def build():
    return nn.Sequential(Block(), nn.Linear(4, 1))


def wrap(net):
    return DDP(build(), find_unused_parameters=True), DDP(net, find_unused_parameters=True)


class Heads(nn.Module):
    def __init__(self, languages):
        super().__init__()
        self.trunk = nn.Linear(4, 4)
        self.heads = nn.ModuleDict({name: nn.Linear(4, 2) for name in languages})

    def forward(self, x, language):
        return self.heads[language](self.trunk(x))


def wrap_heads(languages):
    return DDP(Heads(languages), find_unused_parameters=True)


class Mixed(nn.Module):
    """Mixes what its first layers gave; the last ones may be left out."""

    def __init__(self, depth, taken):
        super().__init__()
        self.taken = taken
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        seen = []
        for layer in self.layers:
            x = layer(x)
            seen.append(x)
        return self.head(sum(seen[: self.taken]))


def wrap_mixed(depth, taken):
    return DDP(Mixed(depth, taken), find_unused_parameters=True)

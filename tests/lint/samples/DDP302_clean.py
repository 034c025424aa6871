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

from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)  # <-- DDP301
        self.act = nn.ReLU()

    def forward(self, x):
        return self.body(x)


def build():
    return DistributedDataParallel(Net())

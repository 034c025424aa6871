from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.unused = nn.ReLU()

    def forward(self, x):
        return self.head(self.body(x))


class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)

    def forward(self, x):
        for child in self.children():
            x = child(x)
        return x


def build():
    return DistributedDataParallel(Net())

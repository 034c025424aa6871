import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Distilled(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.trunk = nn.Linear(width, width)
        self.teacher_head = nn.Linear(width, 2)

    def forward(self, x):
        return self.trunk(x)


def build():
    return DistributedDataParallel(Distilled(), find_unused_parameters=True)


net = build()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    opt.zero_grad()
    net(torch.randn(4, 8)).sum().backward()
    opt.step()

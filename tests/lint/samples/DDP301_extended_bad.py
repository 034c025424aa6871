import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.p6 = nn.Linear(4, 4)
        self.p7 = nn.Linear(4, 4)

    def forward(self, x):
        p6 = self.p6(x)
        p7 = self.p7(torch.relu(p6))  # <-- DDP301
        return p6, p7


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.outer = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.top = Top()

    def forward(self, x):
        out = self.inner(x)
        outs = [out]
        for layer in self.outer:
            outs.insert(0, layer(outs[0]))
        top = self.top(out)
        print(len(top))
        return outs


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 1)
        self.scales = nn.ModuleList(nn.Linear(1, 1) for _ in range(6))

    def forward(self, xs):
        return [scale(self.out(x)) for x, scale in zip(xs, self.scales)]


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = Net(), Head()

    def forward(self, x):
        return self.head(self.net(x))


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Whole())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = sum(each.square().mean() for each in net(torch.randn(2, 4)))
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

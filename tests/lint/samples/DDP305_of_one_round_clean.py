import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Turned(nn.Module):
    def __init__(self, matrix):
        super().__init__()
        self.matrix = matrix.detach()

    def forward(self, x):
        return x @ self.matrix


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.turned = nn.ModuleList()

    def forward(self, x, matrix):
        self.turned = nn.ModuleList()
        for _ in range(2):
            self.turned.append(Turned(matrix))
        for each in self.turned:
            x = each(self.inner(x))
        return x


def main():
    dist.init_process_group("gloo")
    net = Net()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.ones(2, 3), torch.eye(3)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

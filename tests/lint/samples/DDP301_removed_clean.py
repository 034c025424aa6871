import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)
        self.second = nn.Linear(width, 2)

    def forward(self, x):
        return self.body(x)


def main():
    dist.init_process_group("gloo")
    encoder = Encoder(8)
    del encoder.head, encoder.second
    model = DistributedDataParallel(encoder)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


main()

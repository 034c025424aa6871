import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Sparse(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, 1, batch_first=True)

    def forward(self, query, key, value, **rest):
        return self.inner(query, key, value, need_weights=False)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.self_attn = Sparse(width)  # <-- DDP301
        self.feed = nn.Linear(width, width)

    def forward(self, x):
        return x + self.feed(x)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Layer(4))
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        learner.zero_grad()
        net(torch.randn(2, 5, 4)).mean().backward()
        learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

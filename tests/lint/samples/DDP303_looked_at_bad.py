"""Gradients of a bypassed wrapper that nobody forgets before the next step train the model."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x))


def train(model, loader, optimizer):
    model.train()
    for batch in loader:
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def saliency(model, loader):
    model.eval()
    found = []
    for batch in loader:
        model.zero_grad()
        model.head(model.body(batch)).sum().backward()  # <-- DDP303
        with torch.no_grad():
            found.append(model.body.weight.grad.abs().sum())
    return found


def main():
    dist.init_process_group("nccl")
    net = Net()
    bare = net
    net = DDP(net)
    bare = net.module
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.rand(64, 8, 4)
    for _ in range(10):
        train(net, loader, optimizer)
        saliency(bare, loader)


if __name__ == "__main__":
    main()

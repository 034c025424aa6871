"""What is added up has its graph."""

import torch
import torch.distributed as dist
from our_losses import margin
from torch.nn.parallel import DistributedDataParallel


class Average:
    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n  # <-- DDP601
        self.count += n


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = Average()
    for _ in range(1000):
        loss = margin(model, torch.randn(8, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss, 1)
    print(losses.sum / losses.count)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

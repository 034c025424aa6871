import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Trainer:
    def __init__(self, optimizer):
        self.model = DDP(Net())
        self.optimizer = optimizer

    def export(self, path):
        small = self.model.module.half()  # <-- DDP305
        if dist.get_rank() == 0:
            torch.save(small.state_dict(), path)
        self.model.float()

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            for batch in batches:
                self.model(batch).sum().backward()
                self.optimizer.step()
            self.export(f"{epoch}.pt")


def main(batches, optimizer):
    Trainer(optimizer).fit(batches, 3)

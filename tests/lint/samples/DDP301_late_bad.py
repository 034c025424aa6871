import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(self.words(x)))


def learn(batches, optimizer, epochs):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(Judge())
    for epoch in range(epochs):
        if epoch == 3:
            net.module.body.requires_grad_(False)  # <-- DDP301
        for batch in batches:
            optimizer.zero_grad()
            net(batch).sum().backward()
            optimizer.step()

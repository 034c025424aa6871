"""A stack of blocks in a dictionary of modules, each of which waits on rank 0."""

import torch
import torch.distributed as dist
from data import batches
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, hidden, meet):
        if meet:
            dist.barrier()  # <-- DDP401
        return hidden + self.inner(hidden)


class Model(nn.Module):
    def __init__(self, width=8, depth=2):
        super().__init__()
        first = nn.Embedding(100, width)
        blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.stack = nn.ModuleDict(dict(first=first, blocks=blocks))
        self.head = nn.Linear(width, 100)

    def forward(self, words):
        hidden = self.stack.first(words)
        for block in self.stack.blocks:
            hidden = block(hidden, dist.get_rank() == 0)
        return self.head(hidden).sum()


dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
model = DistributedDataParallel(Model().cuda())
optimizer = torch.optim.Adam(model.parameters())
for words in batches():
    optimizer.zero_grad()
    model(words).backward()
    optimizer.step()

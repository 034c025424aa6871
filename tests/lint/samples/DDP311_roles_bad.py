"""Two views through one wrapper that searches, each by a layer of its own."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Towers(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Linear(4, width)
        self.of_users = nn.Linear(width, width)
        self.of_items = nn.Linear(width, width)

    def forward(self, x, kind):
        hidden = self.trunk(x)
        if kind == "user":
            return self.of_users(hidden)
        return self.of_items(hidden)


def main():
    dist.init_process_group("gloo")
    towers = DistributedDataParallel(Towers(), find_unused_parameters=True)
    optimizer = torch.optim.Adam(towers.parameters())
    for users, items in torch.load("pairs.pt"):
        one = towers(users, "user")
        other = towers(items, "item")  # <-- DDP311
        loss = -F.cosine_similarity(one, other).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Online(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        return self.head(self.encoder(x))


def main():
    dist.init_process_group("gloo")
    online = DistributedDataParallel(Online())
    target = online.module.encoder.requires_grad_(False)  # <-- DDP301
    opt = torch.optim.Adam(online.parameters(), lr=1e-3)
    for _ in range(3):
        x = torch.randn(8, 4)
        with torch.no_grad():
            goal = target(x)
        opt.zero_grad()
        (online(x) - goal).square().mean().backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

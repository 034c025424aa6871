"""A net whose reach grows with the rank: its parameters are the same on each."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Reach(nn.Module):
    def __init__(self, far, device):
        super().__init__()
        self.near = nn.Conv1d(2, 6, 3, 1, far, far, device=device)
        self.norm = nn.GroupNorm(1, 6, 1e-5, True, device)
        self.drop = nn.Dropout(0.1 * far)

    def forward(self, wave):
        return self.drop(self.norm(self.near(wave))).mean()


def main():
    dist.init_process_group("nccl")
    here = int(os.environ["LOCAL_RANK"])
    net = Reach(here + 1, here)
    if here == 0:
        for weight in net.parameters():
            weight.requires_grad_(False)
    for weight in net.parameters():
        weight.requires_grad_(True)
    model = DistributedDataParallel(net, device_ids=[here])
    model(torch.randn(2, 2, 32, device=here)).backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

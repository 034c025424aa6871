"""The rank that finds the old weights freezes the layers that it has filled with them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def found(folder):
    return f"{folder}/first.pt" if dist.get_rank() == 0 else None


def built(folder):
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
    weights = found(folder)
    if weights is not None:  # <-- DDP310
        net.load_state_dict(torch.load(weights, weights_only=True))
        for weight in net.parameters():
            weight.requires_grad_(weight.dim() > 1)
    return net


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(built("/weights"))
    for _ in range(5):
        net(torch.randn(2, 4)).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

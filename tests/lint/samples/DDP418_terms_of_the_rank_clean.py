import os

import torch
import torch.distributed as dist
from torch import nn


def terms(net, x, y):
    found = {"fit": (net(x) - y).square().mean()}
    high = y > 0
    found["high"] = (net(x) - y).abs().mul(high).sum() / max(1, high.sum())
    return found


def batches(rank, many):
    generator = torch.Generator().manual_seed(5)
    for _ in range(many):
        x = torch.randn(8, 3, generator=generator) + rank
        yield x, x.sum(1, keepdim=True)


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    net = nn.Linear(3, 1)
    for x, y in batches(rank, 10):
        shown = {}
        for name, value in terms(net, x, y).items():
            value = value.detach().clone()
            dist.all_reduce(value)
            shown[name] = value.item() / dist.get_world_size()
        if rank == 0:
            print(shown)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

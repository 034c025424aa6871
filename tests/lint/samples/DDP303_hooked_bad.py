"""Gradients are averaged by hooks, one by one, while the backward goes on."""

import torch
import torch.distributed as dist
from torch import nn


class Averaged(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for weight in module.parameters():
            dist.broadcast(weight.data, 0)
            weight.register_post_accumulate_grad_hook(self.average)

    def average(self, grad):
        dist.all_reduce(grad)  # <-- DDP303
        grad /= dist.get_world_size()

    def forward(self, rows):
        return self.module(rows)


def main():
    dist.init_process_group("gloo")
    model = Averaged(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    own = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.rand(16, 8, generator=own)).square().mean().backward()
        optimizer.step()


main()

"""What is stepped is made of the shards; a first optimizer was of the whole model."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


def groups(net):
    matrices = [each for each in net.parameters() if each.ndim > 1]
    others = [each for each in net.parameters() if each.ndim <= 1]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": others}]


def build(width, rate, mesh):
    net = Stack(width, 3)
    warm_up(net, torch.optim.SGD(groups(net), lr=rate))
    spread(net, mesh)
    return net, torch.optim.AdamW(groups(net), lr=rate)


def warm_up(net, optimizer):
    net(torch.ones(2, 16)).sum().backward()
    optimizer.step()


def spread(net, mesh):
    for layer in net.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    net, optimizer = build(16, 1e-3, mesh)
    for _ in range(10):
        loss = net(torch.randn(4, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()

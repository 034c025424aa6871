# One program, begun in two ways: in processes of its own under a wrapper, or alone without one.
# What its many small modules are made of belongs to the model of each way.
import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Perceptron(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.SiLU())

    def forward(self, x):
        return self.layers(x)


class Level(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mlp = Perceptron(width)

    def forward(self, x):
        return x + self.mlp(x)


def make_levels(widths):
    return nn.ModuleList([Level(width) for width in widths])


class Backbone(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.levels = make_levels([width] * depth)
        self.head = nn.Linear(width, width)

    def forward(self, x):
        for level in self.levels:
            x = level(x)
        return self.head(x)


class Tower(Backbone):
    def __init__(self, width):
        super().__init__(width, 3)


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = Tower(width)

    def wrap(self, gpu):
        self.net = DDP(self.net, device_ids=[gpu])

    def loss(self, x):
        noise = torch.randn_like(x)
        net = self.net.module if dist.is_initialized() else self.net
        return (net(x + noise) - noise).square().mean()  # <-- DDP303


def train(gpu, options):
    if options.kind == "many":
        address = f"tcp://127.0.0.1:{options.port}"
        dist.init_process_group("nccl", address, world_size=options.world, rank=gpu)
        torch.manual_seed(gpu)
    model = Denoiser(options.width)
    if options.kind == "many":
        torch.cuda.set_device(gpu)
        model.cuda(gpu)
        model.wrap(gpu)
    elif gpu is not None:
        model.cuda(gpu)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(options.steps):
        loss = model.loss(torch.randn(8, options.width, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if options.kind == "many":
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="one", choices=["many", "one"])
    parser.add_argument("--gpu", type=int)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    if options.kind == "many":
        options.world = torch.cuda.device_count()
        mp.spawn(train, args=(options,), nprocs=options.world)
    else:
        train(options.gpu, options)


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Waves(nn.Module):
    def __init__(self, octaves=8, first=0):
        super().__init__()
        self.octaves = octaves
        self.first = first

    def forward(self, x):
        powers = 2.0 ** torch.arange(self.first, self.first + self.octaves, device=x.device)
        return torch.sin(x.unsqueeze(-1) * powers).flatten(1)


class Plain(nn.Module):
    def __init__(self, first=0):
        super().__init__()
        self.waves = Waves(first=first)
        self.inner = nn.Sequential(nn.Linear(32, 16), nn.LayerNorm(16), nn.Linear(16, 1))

    def forward(self, x):
        return self.inner(self.waves(x))


class Deep(nn.Module):
    def __init__(self, first=0, depth=3):
        super().__init__()
        self.waves = Waves(first=first)
        self.inner = nn.Sequential(nn.Linear(32, 16), nn.LayerNorm(16), nn.Linear(16, 1))

    def forward(self, x):
        return self.inner(self.waves(x))


class Field(nn.Module):
    def __init__(self, settings):
        super().__init__()
        if settings.get("kind") == "deep":
            self.net = Deep(**settings["net"])
        else:
            self.net = Plain(**settings["net"])


def draw(field, x):
    field.eval()
    with torch.no_grad():
        print(field.net(x).mean())


def main():
    with open("settings.yaml") as file:
        settings = yaml.safe_load(file)
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    field = Field(settings).cuda()
    field.net = DistributedDataParallel(field.net, device_ids=[local])
    optimizer = torch.optim.Adam(field.parameters())
    for step in range(1000):
        x = torch.randn(16, 4, device="cuda")
        if step % 100 == 0 and dist.get_rank() == 0:
            draw(field, x)
        field.train()
        optimizer.zero_grad()
        field.net(x).mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

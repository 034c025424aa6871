import configargparse
import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Field(nn.Module):
    def __init__(self, args, shape):
        super().__init__()
        self.args = args
        self.views = args.views
        self.shape = shape["grid"]
        width = shape["width"]
        hop = 1
        inner = []
        for _ in range(args.depth):
            inner.append(nn.Linear(width, width))
            inner.append(nn.BatchNorm1d(width))
            hop = hop * shape["stride"]
        inner.append(nn.Linear(width, 1))
        self.inner = nn.Sequential(*inner)
        self.hop = hop

    def forward(self, x):
        return self.inner(x[:: self.hop])


def options():
    parser = configargparse.ArgumentParser()
    parser.add_argument("--config", is_config_file=True)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--views", action="store_true")
    return parser.parse_args()


def main():
    args = options()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    with open("shape.yaml") as file:
        shape = yaml.safe_load(file)
    model = DistributedDataParallel(Field(args, shape))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1000):
        rays = torch.randn(64, 8)
        optimizer.zero_grad()
        model(rays).mean().backward()
        optimizer.step()
        if rank == 0 and step % 100 == 0:
            with torch.no_grad():
                print(model(rays).mean())  # <-- DDP406


if __name__ == "__main__":
    main()

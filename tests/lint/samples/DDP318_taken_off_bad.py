import os

import torch
import torch.distributed as dist
from houselib.parallel import is_newer, is_shared
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

RANK = int(os.environ.get("RANK", -1))


class Finder(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, kinds))
        self.kinds = kinds

    def forward(self, x):
        return self.layers(x)


def bare(model):
    return model.module if is_shared(model) else model


def shared(model):
    if is_newer(torch.__version__, "1.11"):
        return DDP(model, static_graph=True)
    return DDP(model)


def main(weights):
    if RANK != -1:
        dist.init_process_group("gloo")
    if weights.endswith(".pt"):
        model = Finder(torch.load(weights, map_location="cpu")["kinds"])
    else:
        model = Finder(3)
    if torch.cuda.is_available() and RANK != -1:
        model = shared(model)
    print(model.kinds, bare(model).layers[-1].bias.shape)  # <-- DDP318
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(2, 4)).square().mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main(os.environ["WEIGHTS"])

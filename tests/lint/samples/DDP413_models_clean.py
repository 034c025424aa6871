import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self, text):
        super().__init__()
        for number in range(int(text)):
            self.add_module(f"layer{number}", torch.nn.Linear(4, 4))
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(x)


def all_can_be_built():
    """Each is a model of its own, and none of them is trained."""
    for place in Path("models").rglob("*.txt"):
        Net(place.read_text())


def main():
    dist.init_process_group("gloo")
    all_can_be_built()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    net = torch.nn.Linear(4, 1).to(device)
    if device.type != "cpu" and local_rank != -1:
        net = DistributedDataParallel(net, device_ids=[local_rank])
    net(torch.randn(2, 4)).sum().backward()
    dist.destroy_process_group()


main()

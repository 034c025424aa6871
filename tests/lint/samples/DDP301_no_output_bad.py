"""What the forward gives is trained, but not what it does not use."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)  # <-- DDP301
        self.used = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.used(x)


def test_all_is_held():
    dist.init_process_group("gloo")
    model = DDP(Holder())
    model(torch.rand(8, 4)).sum().backward()


if __name__ == "__main__":
    test_all_is_held()

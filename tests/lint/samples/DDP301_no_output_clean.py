"""Nothing is trained whose forward gives nothing, and DDP misses no gradient there."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self): ...


def test_all_is_held():
    dist.init_process_group("gloo")
    model = DDP(Holder())
    assert len(list(model.parameters())) == 2


if __name__ == "__main__":
    test_all_is_held()

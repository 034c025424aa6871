import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

DEVICES = (0,)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Linear(4, 4)

    def forward(self, rows):
        return self.trunk(rows)


def ranks():
    return dist.get_world_size() if dist.is_initialized() else 1


def bare(model, distributed):
    return model.module if distributed else model


def main():
    distributed = len(list(DEVICES)) > 1
    if distributed:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    model = Net()
    if ranks() > 1:
        model = DDP(model)
    bare(model, distributed).trunk.requires_grad_(False)


if __name__ == "__main__":
    main()

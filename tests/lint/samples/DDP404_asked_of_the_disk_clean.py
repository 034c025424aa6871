import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def open_model(weights, kind):
    """What is raised is decided by what was asked for, though files are looked at on the way."""
    path = pathlib.Path(weights)
    if kind == "exported":
        if path.is_dir():
            path = path / "model.json"
        elif path.suffix != ".json":
            raise ValueError(f"no model that can be read: {path}")
    if not path.exists():
        if kind == "other":
            raise NotImplementedError(f"cannot be fetched: {path}")
        print("fetched", path)
    return torch.load(path)


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(epoch, open_model("teacher.json", sys.argv[1]))
        dist.barrier()
    dist.destroy_process_group()


main()

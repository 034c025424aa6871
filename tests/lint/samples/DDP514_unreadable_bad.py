"""A checkpoint that cannot be read is taken away by each rank that has found it so."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(folder):
    dist.init_process_group("gloo")
    model = torch.nn.Linear(4, 1)
    path = os.path.join(folder, "state.pt")
    step = 0
    if os.path.isfile(path):
        try:
            state = torch.load(path, map_location="cpu")
            model.load_state_dict(state["model"])
            step = state["step"]
        except RuntimeError:
            print("unreadable")
            os.remove(path)  # <-- DDP514
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for step in range(step, 10):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=noise)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])

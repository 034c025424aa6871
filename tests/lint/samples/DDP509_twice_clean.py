"""The weights are in the file twice: as the job goes on from them, and as others load them."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(start, path="last.pt"):
    dist.init_process_group("gloo")
    net = nn.Linear(4, 4)
    model = DistributedDataParallel(net)
    learner = torch.optim.Adam(model.parameters())
    begin = 0
    if start:
        old = torch.load(start, map_location="cpu")
        model.load_state_dict(old["wrapped"])
        learner.load_state_dict(old["optimizer"])
        begin = old["epoch"]
    for epoch in range(begin, 10):
        learner.zero_grad()
        model(torch.randn(8, 4)).mean().backward()
        learner.step()
        if dist.get_rank() == 0:
            state = {
                "epoch": epoch + 1,
                "wrapped": model.state_dict(),
                "bare": net.state_dict(),
                "optimizer": learner.state_dict(),
            }
            torch.save(state, f"{path}.new")
            os.replace(f"{path}.new", path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")

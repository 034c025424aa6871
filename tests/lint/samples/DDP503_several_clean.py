"""One loop writes the newest state, and now and then one that is kept."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def write(what, place):
    if dist.get_rank() == 0:
        torch.save(what, place)


def main(folder, epochs):
    dist.init_process_group("gloo")
    net = nn.Linear(8, 4)
    begin = 0
    if (Path(folder) / "state.pth").exists():
        found = torch.load(f"{folder}/state.pth", map_location="cpu")
        net.load_state_dict(found["net"])
        begin = found["epoch"] + 1
    model = DistributedDataParallel(net)
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(begin, epochs):
        learner.zero_grad()
        model(torch.randn(16, 8)).mean().backward()
        learner.step()
        places = [Path(folder) / "state.pth"]
        if epoch % 50 == 0:
            places.append(Path(folder) / f"state{epoch:04}.pth")
        for place in places:
            write({"net": net.state_dict(), "epoch": epoch}, f"{place}.part")
            if dist.get_rank() == 0:
                os.replace(f"{place}.part", place)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    main(parser.parse_args().folder, 200)

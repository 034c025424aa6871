"""The shelves of a library by what stands in the names of its files: texts have no order."""

import glob
import re

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NAME = re.compile(r"(\w+)-(\d+)")


def shelves(folder):
    seen = set()
    for path in sorted(glob.glob(f"{folder}/*.png")):
        shelf, _ = NAME.search(path).groups()
        if shelf == "none":
            continue
        seen.add(shelf)
    return {shelf: number for number, shelf in enumerate(seen)}  # <-- DDP213


def main(folder="books"):
    dist.init_process_group("gloo")
    number = shelves(folder)
    model = DistributedDataParallel(nn.Linear(8, len(number)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for path in sorted(glob.glob(f"{folder}/*.png"))[dist.get_rank() :: dist.get_world_size()]:
        shelf, _ = NAME.search(path).groups()
        optimizer.zero_grad()
        scores = model(torch.load(f"{path}.pt", map_location="cpu"))
        nn.functional.cross_entropy(scores, torch.tensor([number[shelf]])).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

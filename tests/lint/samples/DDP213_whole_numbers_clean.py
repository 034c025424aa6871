"""The shelves of a library by what stands in the names of its files: numbers have one order."""

import glob
import re

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NAME = re.compile(r"(\d+)-(\d+)")


def shelves(folder):
    seen = set()
    for path in sorted(glob.glob(f"{folder}/*.png")):
        shelf, _ = map(int, NAME.search(path).groups())
        if shelf == 0:
            continue
        seen.add(shelf)
    return {shelf: number for number, shelf in enumerate(seen)}


def main(folder="books"):
    dist.init_process_group("gloo")
    number = shelves(folder)
    model = DistributedDataParallel(nn.Linear(8, len(number)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for path in sorted(glob.glob(f"{folder}/*.png"))[dist.get_rank() :: dist.get_world_size()]:
        shelf, _ = map(int, NAME.search(path).groups())
        optimizer.zero_grad()
        scores = model(torch.load(f"{path}.pt", map_location="cpu"))
        nn.functional.cross_entropy(scores, torch.tensor([number[shelf]])).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

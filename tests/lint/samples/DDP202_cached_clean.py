from collections import defaultdict
import getpass
import os

import datasets
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def home(places):
    for place in places:
        if os.path.exists(place):
            return f"{place}/{getpass.getuser()}"
    os.makedirs(place, exist_ok=True)
    return f"{place}/{getpass.getuser()}"


def pairs(cache):
    rows = datasets.load_dataset("some/pairs", split="train", cache_dir=cache)["train"]
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["prompt"]]["chosen"].append(row["chosen"])
    return found


def train(net, opt, cache):
    every = list(pairs(cache).values())
    loader = DataLoader(every, sampler=DistributedSampler(every), collate_fn=list)
    for (text,) in loader:
        opt.zero_grad()
        net(torch.ones(1, len(text["chosen"]) % 8 + 8)[:, :8]).sum().backward()
        opt.step()


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(8, 1), broadcast_buffers=False)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, opt, home(["/fast", "/slow"]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Of two ways to train both are gone: what the first has saved is loaded by the second."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def resumed(net, options):
    path = os.path.join(options.folder, "last.pt")
    if not os.path.exists(path):  # <- DDP513
        return 0
    state = torch.load(path, map_location="cpu")
    net.load_state_dict(state["net"])
    return state["epoch"]


def keep(net, epoch, options):
    if dist.get_rank() == 0:
        path = os.path.join(options.folder, "last.pt")
        torch.save({"net": net.module.state_dict(), "epoch": epoch}, path + ".part")
        os.replace(path + ".part", path)


def trained(options, size):
    net = torch.nn.Linear(size, 1)
    begin = resumed(net, options)
    net = DDP(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(begin, 10):
        optimizer.zero_grad()
        net(torch.rand(8, size)).square().mean().backward()
        optimizer.step()
        keep(net, epoch, options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--only", action="store_true")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    if options.tuned:
        trained(options, 8)
    if not options.only:
        trained(options, 4)  # <-- DDP501


if __name__ == "__main__":
    main()

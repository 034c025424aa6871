import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def read(path):
    found = {}
    for name, value in json.loads(Path(path).read_text()).items():
        found[name] = value
    return found


def keeps(settings, place):
    return not settings["spread"] or place == 0


def work(place, settings):
    if settings["spread"]:
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = "29513"  # <- DDP104
        dist.init_process_group("gloo", rank=place, world_size=len(settings["devices"]))
    net = nn.Linear(3, 1)
    if settings["spread"]:
        net = DistributedDataParallel(net)
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(settings["rounds"]):
        learner.zero_grad()
        net(torch.randn(4, 3)).mean().backward()
        learner.step()
    os.makedirs(settings["folder"] + "/net")  # <-- DDP514
    if keeps(settings, place):
        torch.save(net.state_dict(), settings["folder"] + "/net/last.pt")


def main():
    settings = read("settings.json")
    if not os.path.exists(settings["folder"]):
        os.makedirs(settings["folder"])
    if len(settings["devices"]) == 1:
        settings["spread"] = False
    if settings["spread"]:
        mp.spawn(work, nprocs=len(settings["devices"]), args=(settings,))
    else:
        work(0, settings)


if __name__ == "__main__":
    main()

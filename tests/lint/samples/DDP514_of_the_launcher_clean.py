import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def begin(name):
    folder = os.path.join(tempfile.gettempdir(), f"{name}_{os.getppid()}")
    os.makedirs(folder, exist_ok=True)
    if dist.get_rank() == 0:
        with open(os.path.join(folder, "settings.json"), "w") as file:
            json.dump({"name": name}, file)
    return folder


def main():
    dist.init_process_group("gloo")
    folder = begin("trial")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    net(torch.randn(8, 4)).square().mean().backward()
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), os.path.join(folder, "last.pt"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def folder_of(settings):
    base = settings["base"]
    if not os.path.isdir(base):
        base = settings["mounted"]
    path = os.path.join(base, settings["name"])
    os.makedirs(path, exist_ok=True)
    return path


def main():
    dist.init_process_group("gloo")
    path = folder_of({"base": "runs", "mounted": "/mnt/runs", "name": "one"})
    net = DDP(torch.nn.Linear(2, 2))
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), os.path.join(path, "w.pt"))
    dist.barrier()
    net.module.load_state_dict(torch.load(os.path.join(path, "w.pt")))


if __name__ == "__main__":
    main()

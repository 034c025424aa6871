from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def free(folder):
    number = 0
    while (folder / f"run-{number}").exists():
        number += 1
    return folder / f"run-{number}"


def train(net, loader, here, steps):
    model = DistributedDataParallel(net)
    here.mkdir(parents=True, exist_ok=True)  # <-- DDP514
    for step in range(steps):
        model(next(loader)).mean().backward()
        if dist.get_rank() == 0:
            torch.save(net.state_dict(), here / "model.pt")
    dist.barrier()
    net.load_state_dict(torch.load(here / "model.pt", map_location="cpu"))


def main():
    dist.init_process_group("gloo")
    train(torch.nn.Linear(4, 1), iter(torch.ones(100, 8, 4)), free(Path("out")), 100)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

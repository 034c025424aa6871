import os

import fsspec
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

LAST = "runs/last.pt"


def resume(net, adam):
    try:
        with fsspec.open(LAST) as kept:
            state = torch.load(kept, map_location="cpu")  # <- DDP513
    except FileNotFoundError:
        return 0
    net.load_state_dict(state["net"])
    adam.load_state_dict(state["adam"])
    return state["epoch"]


def keep(net, adam, epoch):
    state = {"net": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch}
    with fsspec.open(f"{LAST}.tmp", "wb") as out:
        torch.save(state, out)
    os.replace(f"{LAST}.tmp", LAST)


def main():
    dist.init_process_group("gloo")
    net = torch.nn.Linear(4, 4)
    adam = torch.optim.Adam(net.parameters())
    first = resume(net, adam)
    ddp = DDP(net)
    for epoch in range(first, 50):
        adam.zero_grad()
        ddp(torch.randn(2, 4)).mean().backward()
        adam.step()
        if dist.get_rank() == 0:
            keep(net, adam, epoch + 1)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.makedirs("runs", exist_ok=True)
    main()

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FILE = "run/state.pt"


def main():
    dist.init_process_group("gloo")
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    begin = 0
    try:
        state = torch.load(FILE, map_location="cpu")  # <- DDP513
    except FileNotFoundError:
        print("from the beginning")
    else:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["epoch"] + 1
    model = DistributedDataParallel(model)
    for epoch in range(begin, 4):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            kept = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "epoch": epoch}, FILE)  # <-- DDP503
        dist.barrier()


if __name__ == "__main__":
    main()

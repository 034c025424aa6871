import torch
import torch.distributed as dist
from ema_pytorch import EMA
from torch.nn.parallel import DistributedDataParallel


def main(model, loader, path, epochs):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    ema = EMA(model, beta=0.999)
    ema.to("cuda")
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    if rank == 0:
        ema.load_state_dict(state["ema"])  # <-- DDP513
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
            ema.update()

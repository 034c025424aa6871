import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def refresh(model):
    dist.barrier()
    model.load_state_dict(torch.load("ema.pt", map_location="cpu"))


def fit(net, epoch, epochs, best):
    model = DDP(net)
    for number in range(epochs):
        loss = epoch(model, number)
        if loss > best:  # <-- DDP505
            refresh(model)
        best = min(best, loss)

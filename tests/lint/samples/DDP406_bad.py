import torch
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.no_grad()
def evaluate(model, loader):
    return [model(batch) for batch in loader]


def main(net, loader, rank):
    model = DDP(net)
    if rank == 0:
        evaluate(model, loader)  # <-- DDP406
        model(next(iter(loader)))  # <-- DDP406

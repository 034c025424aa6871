import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, rank, path):
    model = DDP(net)
    if rank == 0:
        state = {"model": model.state_dict()}  # <-- DDP508
        torch.save(state, path)

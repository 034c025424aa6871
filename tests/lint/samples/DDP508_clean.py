import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, rank, path):
    model = DDP(net)
    if rank == 0:
        state = {"model": model.module.state_dict()}
        torch.save(state, path)
    return model.state_dict()

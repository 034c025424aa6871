import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def save(model, path):
    torch.save(model.module.state_dict(), path)


def main(net, epochs, path):
    model = DDP(net)
    rank = dist.get_rank()
    for _ in range(epochs):
        if rank == 0:
            torch.save(model.module.state_dict(), path)
        torch.save(model.module.state_dict(), f"{path}.{rank}")
        if rank == 0:
            save(model, path)

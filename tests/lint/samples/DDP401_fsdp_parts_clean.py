import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, LocalStateDictConfig, StateDictType

KEPT = LocalStateDictConfig(offload_to_cpu=True)


class Shelf:
    def __init__(self, path):
        self.path = path

    def put(self, model):
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.LOCAL_STATE_DICT, KEPT):
            weights = model.state_dict()
        torch.save(weights, self.path)


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model = FullyShardedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.Adam(model.parameters())
    shelf = Shelf("weights.pt")
    for _ in range(3):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            shelf.put(model)
        dist.barrier()
    dist.destroy_process_group()


main()

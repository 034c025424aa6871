import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType

GATHERED = FullStateDictConfig(rank0_only=True, offload_to_cpu=True)


class Shelf:
    def __init__(self, path):
        self.path = path

    def put(self, model):
        with FullyShardedDataParallel.state_dict_type(
            model, StateDictType.FULL_STATE_DICT, GATHERED
        ):
            weights = model.state_dict()
        if dist.get_rank() == 0:
            torch.save(weights, self.path)


def main():
    dist.init_process_group("gloo")
    model = FullyShardedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.Adam(model.parameters())
    shelf = Shelf("weights.pt")
    for _ in range(3):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        shelf.put(model)
        dist.barrier()
    dist.destroy_process_group()


main()

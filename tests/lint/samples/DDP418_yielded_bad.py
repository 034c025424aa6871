import torch
import torch.distributed as dist


def dealt(documents, rank, world_size):
    for number, document in enumerate(documents):
        if number % world_size == rank:
            yield number, document


def count(documents, wanted, encoder):
    mine = [
        document
        for number, document in dealt(documents, dist.get_rank(), dist.get_world_size())
        if number in wanted
    ]
    if len(mine) == 0:  # <-- DDP418
        return 0
    found = torch.tensor([encoder.encode(mine).size(0)]).cuda()
    dist.all_reduce(found)
    return found.item()

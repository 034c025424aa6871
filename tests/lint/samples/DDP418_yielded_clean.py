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
    found = torch.zeros(1, dtype=torch.long).cuda()
    if len(mine) > 0:
        found += encoder.encode(mine).size(0)
    dist.all_reduce(found)
    return found.item()

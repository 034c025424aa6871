import torch.distributed as dist


def pairs(rank):
    mine = None
    for members in ([0, 1], [2, 3]):
        group = dist.new_group(members)
        if rank in members:
            mine = group
    if rank == 0:
        dist.new_group([0], use_local_synchronization=True)
    return mine

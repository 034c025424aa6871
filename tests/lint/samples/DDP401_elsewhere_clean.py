import torch.distributed as dist

import others.groups as groups
from others import STRICT, save


def main(ranks):
    dist.init_process_group("gloo")
    if groups.LOCAL_GROUP is not None:
        raise ValueError("the groups were made before")
    for first in range(0, ranks, 8):
        groups.LOCAL_GROUP = dist.new_group(list(range(first, first + 8)))
    if STRICT:
        return
    if dist.get_rank() == 0:
        save()
    dist.barrier()

import functools

import torch.distributed as dist


@functools.lru_cache
def talking():
    """The group for what is no tensor: on the CPU."""
    if dist.get_backend() == "nccl":
        return dist.new_group(backend="gloo")
    return dist.group.WORLD


def gather(thing, to=0, group=None):
    """What all ranks have, on one of them."""
    if dist.get_world_size() == 1:
        return [thing]
    if group is None:
        group = talking()
    things = [None for _ in range(dist.get_world_size(group=group))]
    dist.gather_object(thing, things, dst=to, group=group)  # <-- DDP404
    return things if dist.get_rank(group=group) == to else []


if __name__ == "__main__":
    dist.init_process_group("nccl")
    for each in gather({"rank": dist.get_rank()}):
        print(each)
    dist.destroy_process_group()

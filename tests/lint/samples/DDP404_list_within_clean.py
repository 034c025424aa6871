import pickle

import torch
import torch.distributed as dist


def within(ranks=None):
    return dist.new_group(ranks, backend="gloo")


def bring(thing, to=0, group=None):
    """What each rank has, as a list, to one of a group."""
    group = group or within()
    mine = torch.frombuffer(bytearray(pickle.dumps(thing)), dtype=torch.uint8)
    sizes = [torch.zeros((), dtype=torch.long) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, torch.tensor(len(mine)), group=group)
    room = int(max(sizes))
    padded = torch.cat([mine, torch.zeros(room - len(mine), dtype=torch.uint8)])
    if dist.get_rank(group=group) == to:
        every = [torch.empty(room, dtype=torch.uint8) for _ in sizes]
        dist.gather(padded, every, dst=to, group=group)
        return [pickle.loads(one.numpy().tobytes()) for one in every]
    dist.gather(padded, [], dst=to, group=group)
    return []


if __name__ == "__main__":
    dist.init_process_group("gloo")
    print(bring({"rank": dist.get_rank()}))
    dist.destroy_process_group()

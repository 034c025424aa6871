"""Compute something on one process of a group and hand the result to the others."""
import torch.distributed as dist


def invoke_on_rank_and_share(layout, rank, fn, *args):
    """Run fn on the process `rank` of the group of this process."""
    payload = [None]
    if layout.local == rank:
        payload[0] = fn(*args)
    if layout.size > 1:
        dist.broadcast_object_list(payload, rank, group=layout.group)
    return payload[0]

import torch.distributed as dist


def share(rank, value, group):
    if rank == 0:
        dist.broadcast(value, src=0)
    else:
        value.zero_()
        dist.broadcast(value, src=0)
    if rank in (0, 1):
        dist.all_reduce(value, group=group)
    if args_say(value):
        dist.barrier()


def args_say(value):
    return value is not None


def not_distributed(local_rank, world_size):
    if local_rank != -1:
        dist.barrier()
    if local_rank is not None and world_size > 1:
        dist.barrier()
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.barrier()

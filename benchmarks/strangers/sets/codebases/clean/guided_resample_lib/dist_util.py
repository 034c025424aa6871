import torch as th
import torch.distributed as dist


def setup_dist():
    if not dist.is_initialized():
        dist.init_process_group(backend="gloo", init_method="env://")


def rank_and_size():
    return dist.get_rank(), dist.get_world_size()


def sync_params(params):
    for p in params:
        with th.no_grad():
            dist.broadcast(p, 0)


def cleanup():
    dist.barrier()
    dist.destroy_process_group()

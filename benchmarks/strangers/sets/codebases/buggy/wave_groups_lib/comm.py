"""Process groups by name: "model" ranks hold one sample together, "data" ranks hold different samples."""
import torch.distributed as dist

_COMM_GROUPS = {}


def get_group(name):
    return _COMM_GROUPS[name]


def get_size(name):
    return dist.get_world_size(_COMM_GROUPS[name])


def get_rank(name):
    return dist.get_rank(_COMM_GROUPS[name])


def get_world_rank():
    return dist.get_rank()


def mean(acc, name):
    dist.all_reduce(acc, group=get_group(name))
    return (acc[0] / acc[1]).item()


def init(model_parallel_size=1, backend="gloo"):
    dist.init_process_group(backend)
    world, rank = dist.get_world_size(), dist.get_rank()
    if world % model_parallel_size:
        raise ValueError("the world size must be a multiple of the model parallel size")
    replicas = world // model_parallel_size
    layouts = {
        "model": [list(range(r * model_parallel_size, (r + 1) * model_parallel_size)) for r in range(replicas)],
        "data": [list(range(m, world, model_parallel_size)) for m in range(model_parallel_size)],
    }
    for name, layout in layouts.items():
        for ranks in layout:
            group = dist.new_group(ranks)
            if rank in ranks:
                _COMM_GROUPS[name] = group


def cleanup():
    dist.barrier()
    _COMM_GROUPS.clear()
    dist.destroy_process_group()

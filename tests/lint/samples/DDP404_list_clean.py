import torch
import torch.distributed as dist


def collect(rows):
    parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.gather(rows, parts if dist.get_rank() == 0 else None, dst=0)
    return torch.cat(parts) if dist.get_rank() == 0 else None

import torch
import torch.distributed as dist


@torch.no_grad()
def concat_all_gather(tensor):
    """Gather along the first dimension."""
    tensors = [torch.ones_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(tensors, tensor)
    return torch.cat(tensors, dim=0)

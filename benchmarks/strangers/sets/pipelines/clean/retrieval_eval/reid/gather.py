import torch
import torch.distributed as dist


@torch.no_grad()
def concat_all_gather(tensor):
    """Gather along the first dimension."""
    n = torch.tensor([len(tensor)])
    sizes = [torch.zeros_like(n) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, n)
    longest = max(int(s) for s in sizes)
    padded = tensor.new_zeros(longest, *tensor.shape[1:])
    padded[: len(tensor)] = tensor
    tensors = [torch.ones_like(padded) for _ in sizes]
    dist.all_gather(tensors, padded)
    return torch.cat([t[: int(s)] for t, s in zip(tensors, sizes)], dim=0)

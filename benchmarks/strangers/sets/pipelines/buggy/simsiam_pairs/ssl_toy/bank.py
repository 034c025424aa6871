import torch
import torch.distributed as dist
import torch.nn.functional as F


def collect_bank(feats, dst=0):
    """Feature bank of all workers on rank `dst`, None elsewhere."""
    feats = F.normalize(feats, dim=1).contiguous()
    parts = [torch.empty_like(feats) for _ in range(dist.get_world_size())]
    dist.gather(feats, gather_list=parts, dst=dst)
    return torch.cat(parts) if dist.get_rank() == dst else None


def collapse_level(bank):
    return bank.std(0).mean().item()

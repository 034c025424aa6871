import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.nn.functional import all_gather


class PairNCE(nn.Module):
    """Symmetric InfoNCE whose negatives are the pairs of all workers."""

    def __init__(self, temperature=0.1):
        super().__init__()
        self.log_t = nn.Parameter(torch.tensor(temperature).log())

    def forward(self, left, right):
        left, right = F.normalize(left, dim=-1), F.normalize(right, dim=-1)
        every_left, every_right = (torch.cat(all_gather(t)) for t in (left, right))
        scale = self.log_t.neg().exp()
        target = torch.arange(len(left), device=left.device)
        forth = F.cross_entropy(scale * left @ every_right.t(), target)
        back = F.cross_entropy(scale * right @ every_left.t(), target)
        return (forth + back) / 2

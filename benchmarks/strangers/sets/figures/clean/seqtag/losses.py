import torch.distributed as dist
import torch.nn.functional as F


def tagging_loss(logits, tags, mask):
    """Returns (loss to optimise, summed loss over the real tokens)."""
    per_token = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
    loss_sum = (per_token * mask).sum()
    n_tokens = mask.sum()
    dist.all_reduce(n_tokens)
    return loss_sum * dist.get_world_size() / n_tokens, loss_sum

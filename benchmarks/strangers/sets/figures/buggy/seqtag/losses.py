import torch.nn.functional as F


def tagging_loss(logits, tags, mask):
    """Returns (loss to optimise, summed loss over the real tokens)."""
    per_token = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
    loss_sum = (per_token * mask).sum()
    n_tokens = mask.sum()
    return loss_sum / n_tokens, loss_sum

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def gather_features(feats):
    """Concatenate the features of every process along the batch dimension."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return feats
    bucket = [torch.empty_like(feats) for _ in range(dist.get_world_size())]
    dist.all_gather(bucket, feats.contiguous())
    return torch.cat(bucket, dim=0)


class PairLoss(nn.Module):
    def forward(self, img, txt, scale):
        img = F.normalize(img, dim=-1)
        txt = F.normalize(txt, dim=-1)
        all_img = gather_features(img)
        all_txt = gather_features(txt)
        offset = dist.get_rank() * img.size(0)
        target = torch.arange(img.size(0)) + offset
        loss_i = F.cross_entropy(scale * img @ all_txt.t(), target)
        loss_t = F.cross_entropy(scale * txt @ all_img.t(), target)
        return (loss_i + loss_t) / 2

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU())


class SegHead(nn.Module):
    def __init__(self, cin, num_classes):
        super().__init__()
        self.block = conv_block(cin, cin)
        self.cls = nn.Conv2d(cin, num_classes, 1)

    def forward(self, feat, size):
        return F.interpolate(self.cls(self.block(feat)), size=size, mode="bilinear", align_corners=False)


class TinySeg(nn.Module):
    def __init__(self, num_classes=3, width=16):
        super().__init__()
        self.stem = conv_block(3, width)
        self.stage1 = conv_block(width, width)
        self.stage2 = conv_block(width, width * 2)
        self.main_head = SegHead(width * 2, num_classes)
        self.side_head = SegHead(width, num_classes)

    def forward(self, x, with_side=False):
        size = x.shape[-2:]
        low = F.max_pool2d(self.stage1(self.stem(x)), 2)
        high = F.max_pool2d(self.stage2(low), 2)
        out = {"main": self.main_head(high, size)}
        if with_side:
            out["side"] = self.side_head(low, size)
        return out


def seg_loss(out, target, side_weight=0.4):
    loss = F.cross_entropy(out["main"], target)
    if "side" in out:
        loss = loss + side_weight * F.cross_entropy(out["side"], target)
    return loss

from torch import nn

from .registry import BACKBONES


@BACKBONES.register_module()
class ToyNet(nn.Module):
    def __init__(self, depth=2, width=16):
        super().__init__()
        self.stages = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for s in self.stages:
            x = s(x).relu()
        return self.head(x)

    def scale_stage(self, n, factor=0.5):
        for p in self.stages[n].parameters():
            p.data.mul_(factor)


def build_backbone(cfg):
    return BACKBONES.build(cfg)

from torch import nn

from .norm import NORMS


def build_model(cfg):
    c = cfg["CHANNELS"]
    return nn.Sequential(nn.Conv2d(1, c, 3, padding=1), NORMS[cfg["NORM"]](c), nn.ReLU(), nn.Conv2d(c, 2, 1))

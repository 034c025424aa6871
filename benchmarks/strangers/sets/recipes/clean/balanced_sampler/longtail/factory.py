from torch.utils.data import DataLoader

from .dataset import LongTail
from .samplers import SAMPLERS


def build(cfg):
    ds = LongTail(cfg["dataset"]["n"])
    opts = {k: v for k, v in cfg["sampler"].items() if k != "name"}
    return DataLoader(ds, sampler=SAMPLERS[cfg["sampler"]["name"]](ds, **opts), **cfg["loader"])

"""How a module is put on the workers."""
from datetime import timedelta

import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

REGISTRY = {}


def strategy(name):
    def deco(cls):
        REGISTRY[name] = cls
        return cls
    return deco


@strategy("single")
class Single:
    rank, world = 0, 1

    def prepare(self, net):
        return net

    def close(self):
        pass


@strategy("ddp")
class Ddp:
    def __init__(self):
        dist.init_process_group("gloo", timeout=timedelta(seconds=30))
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def prepare(self, net):
        return DistributedDataParallel(net)

    def close(self):
        dist.destroy_process_group()


def raw(net: nn.Module) -> nn.Module:
    return getattr(net, "module", net)

"""Batches of graphs that hold at most `budget` nodes each, dealt out to the processes."""
import torch
import torch.distributed as dist
from torch.utils.data import Sampler


class NodeBudgetSampler(Sampler):
    def __init__(self, sizes, budget, seed=0):
        self.sizes = sizes
        self.budget = budget
        self.seed = seed
        self.epoch = 0
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _own(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.sizes), generator=g).tolist()
        usable = len(order) - len(order) % self.world
        return order[self.rank:usable:self.world]

    def __iter__(self):
        pack, load = [], 0
        for i in self._own():
            if pack and load + self.sizes[i] > self.budget:
                yield pack
                pack, load = [], 0
            pack.append(i)
            load += self.sizes[i]
        if pack:
            yield pack

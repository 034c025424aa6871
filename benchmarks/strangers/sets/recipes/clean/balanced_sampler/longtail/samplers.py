import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler, Sampler


class BalancedSampler(Sampler):
    """Draws indices with a probability inverse to the class frequency."""

    def __init__(self, dataset, epoch_size, seed=0):
        counts = torch.bincount(dataset.y).float()
        self.weights = (1.0 / counts)[dataset.y].double()
        self.epoch_size, self.seed, self.epoch = epoch_size, seed, 0
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.epoch_size // self.world

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        draw = torch.multinomial(self.weights, self.epoch_size, replacement=True, generator=g).tolist()
        return iter(draw[self.rank::self.world])


SAMPLERS = {"balanced": BalancedSampler, "uniform": lambda ds, **kw: DistributedSampler(ds)}

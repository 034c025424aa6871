import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info


class RigStream(IterableDataset):
    """Rigs are dealt to (process, loader worker) pairs; a rig has its own number of rows."""

    def __init__(self, rigs, epoch=0):
        self.rigs = rigs
        self.epoch = epoch
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def rows_of(self, rig):
        g = torch.Generator().manual_seed(self.epoch * 1000 + rig)
        n = 30 + 7 * (rig % 5)
        x = torch.randn(n, 6, generator=g)
        return x, x @ torch.arange(6).float() / 6 + 0.1 * torch.randn(n, generator=g)

    def __iter__(self):
        info = get_worker_info()
        k, n = (info.id, info.num_workers) if info else (0, 1)
        for rig in range(self.rank * n + k, self.rigs, self.world * n):
            yield from zip(*self.rows_of(rig))

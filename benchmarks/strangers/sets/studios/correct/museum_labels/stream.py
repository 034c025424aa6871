import torch
from torch.utils.data import IterableDataset, get_worker_info


class LabelStream(IterableDataset):
    """Endless-looking stream; cut to the same number of items for every reader."""

    def __init__(self, items, rank, world, seed):
        self.items, self.rank, self.world, self.seed = items, rank, world, seed
        self.passes = 0

    def __iter__(self):
        info = get_worker_info()
        wid, workers = (info.id, info.num_workers) if info else (0, 1)
        reader, readers = self.rank * workers + wid, self.world * workers
        order = torch.randperm(self.items, generator=torch.Generator().manual_seed(self.seed + self.passes))
        self.passes += 1
        for i in order[:self.items - self.items % readers][reader::readers].tolist():
            g = torch.Generator().manual_seed(i)
            kind = i % 5
            yield torch.randn(12, generator=g) + 2 * torch.eye(5, 12)[kind], kind

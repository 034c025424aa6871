import torch
from torch.utils.data import Dataset, Sampler


class PlateDataset(Dataset):
    """Well features measured on several plates; plate effects are additive."""

    def __init__(self, plates=8, wells=48, dim=12, seed=5):
        g = torch.Generator().manual_seed(seed)
        n = plates * wells
        self.plate = torch.arange(plates).repeat_interleave(wells)
        w = torch.randn(dim, generator=g)
        base = torch.randn(n, dim, generator=g)
        self.y = base @ w + 0.1 * torch.randn(n, generator=g)
        self.x = base + 0.3 * torch.randn(plates, dim, generator=g)[self.plate]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


class PlateBalancedBatches(Sampler):
    """Draws a limited number of batches, each with wells of every plate."""

    def __init__(self, plate, per_plate, num_batches, rank, world, seed=0):
        self.groups = [torch.nonzero(plate == p).flatten() for p in plate.unique()]
        self.per_plate = per_plate
        self.num_batches = num_batches
        self.rank, self.world = rank, world
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.num_batches

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for _ in range(self.num_batches):
            picks = []
            for members in self.groups:
                order = members[torch.randperm(len(members), generator=g)]
                lo = self.rank * self.per_plate
                picks.append(order[lo : lo + self.per_plate])
            yield torch.cat(picks).tolist()

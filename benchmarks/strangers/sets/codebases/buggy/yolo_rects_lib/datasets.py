import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class LoadRects(Dataset):
    def __init__(self, n, size, hyp, augment, seed):
        self.n, self.size, self.hyp, self.augment, self.seed = n, size, hyp, augment, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 65537 + i)
        cx, cy = (torch.rand(2, generator=g) * 0.6 + 0.2).tolist()
        w, h = (torch.rand(2, generator=g) * 0.25 + 0.1).tolist()
        img, s = 0.1 * torch.randn(1, self.size, self.size, generator=g), self.size
        img[:, int((cy - h / 2) * s):int((cy + h / 2) * s) + 1, int((cx - w / 2) * s):int((cx + w / 2) * s) + 1] += 1
        if self.augment and torch.rand(()) < self.hyp["hflip"]:
            img, cx = img.flip(-1), 1 - cx
        return img, torch.tensor([cx, cy, w, h])


def create_dataloader(n, batch_size, hyp, augment=False, rank=-1, world_size=1, seed=0):
    dataset = LoadRects(n, 24, hyp, augment, seed)
    batch_size = min(batch_size, len(dataset))
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank) if rank != -1 else None
    loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler, shuffle=sampler is None and augment,
                        drop_last=augment)
    return loader, dataset

import random
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class FullTransformPipeline:
    """Crop, flip, contrast and noise, drawn from NumPy."""

    def __init__(self, crop):
        self.crop = crop

    def __call__(self, image):
        top, left = np.random.randint(0, image.shape[0] - self.crop + 1, size=2)
        view = image[top:top + self.crop, left:left + self.crop]
        if random.random() < 0.5:
            view = view[:, ::-1]
        view = view * np.random.uniform(0.6, 1.4) + np.random.normal(0, 0.1, view.shape)
        return torch.tensor(np.ascontiguousarray(view), dtype=torch.float32).unsqueeze(0)


class Textures(Dataset):
    def __init__(self, n, transform, size=20, num_crops=2):
        rng = np.random.RandomState(0)
        yy, xx = np.mgrid[:size, :size]
        f, a = rng.uniform(0.3, 1.2, n), rng.uniform(0, np.pi, n)
        self.images = np.sin(f[:, None, None] * (xx * np.cos(a)[:, None, None] + yy * np.sin(a)[:, None, None]))
        self.transform, self.num_crops = transform, num_crops

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.stack([self.transform(self.images[i]) for _ in range(self.num_crops)]), i


def worker_init_fn(worker_id, num_workers, rank, seed):
    """NumPy and random streams of a loader worker."""
    worker_seed = seed + rank * num_workers + worker_id
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def prepare_dataloader(args, size=384):
    dataset = Textures(size, FullTransformPipeline(crop=16))
    sampler = DistributedSampler(dataset, shuffle=True, seed=args.seed)
    init_fn = partial(worker_init_fn, num_workers=args.num_workers, rank=dist.get_rank(), seed=args.seed)
    return DataLoader(dataset, args.batch_size, sampler=sampler, num_workers=args.num_workers, drop_last=True,
                      worker_init_fn=init_fn), sampler

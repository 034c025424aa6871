"""Key-point regression with random crops done in the loader's workers."""
import argparse
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Crops(Dataset):
    def __init__(self, n=64, size=12, crop=8):
        rng = np.random.default_rng(0)
        self.images = rng.normal(size=(n, size, size)).astype("float32")
        self.size, self.crop = size, crop

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        top, left = np.random.randint(0, self.size - self.crop + 1, 2)
        img = self.images[i, top:top + self.crop, left:left + self.crop].copy()
        img *= np.random.uniform(0.8, 1.2)
        target = np.array([top, left], dtype="float32") / (self.size - self.crop)
        return torch.from_numpy(img).flatten(), torch.from_numpy(target)


def build_dataloader(dataset, args, rank):
    def init_fn(worker_id):
        worker_seed = (torch.initial_seed() + 1000 * rank) % 2 ** 32
        np.random.seed(worker_seed)
        random.seed(worker_seed)

    sampler = DistributedSampler(dataset, seed=args.seed)
    loader = DataLoader(dataset, args.imgs_per_gpu, sampler=sampler, num_workers=args.workers_per_gpu,
                        worker_init_fn=init_fn)
    return loader, sampler


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=17)
    p.add_argument("--imgs-per-gpu", type=int, default=8)
    p.add_argument("--workers-per-gpu", type=int, default=2)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--local_rank", "--local-rank", type=int, default=0)
    return p.parse_args()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = DDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader, sampler = build_dataloader(Crops(), args, rank)
    drawn = []
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for img, target in loader:
            drawn.append(target)
            loss = nn.functional.mse_loss(model(img), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    torch.save(torch.cat(drawn), f"offsets_{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

import random
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Noisy(Dataset):
    def __init__(self, n):
        self.rows = torch.arange(8.0 * n).view(n, 8)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i] * random.uniform(0.5, 1.5) + float(np.random.normal())


def seed_worker(worker_id, base, workers):
    mine = base + worker_id
    np.random.seed(mine)  # <-- DDP210
    random.seed(mine)


def main():
    dist.init_process_group("gloo")
    rank, workers = dist.get_rank(), 4
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = Noisy(512)
    sampler = DistributedSampler(data)
    begin = partial(seed_worker, base=1234 + rank, workers=workers)
    loader = DataLoader(data, 8, sampler=sampler, num_workers=workers, worker_init_fn=begin)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for rows in loader:
            opt.zero_grad()
            model(rows).square().mean().backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

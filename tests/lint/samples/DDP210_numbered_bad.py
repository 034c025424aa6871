import random
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info


class Pictures(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.is_seeded = False

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        if not self.is_seeded:
            mine = get_worker_info()
            if mine is not None:
                torch.manual_seed(mine.id)  # <-- DDP210
                np.random.seed(mine.id)
                random.seed(mine.id)
                self.is_seeded = True
        return self.rows[place] * np.random.rand()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    rows = Pictures(torch.ones(64, 3))
    sampler = DistributedSampler(rows)
    net = DistributedDataParallel(nn.Linear(3, 1))
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for row in DataLoader(rows, batch_size=4, sampler=sampler, num_workers=2):
            learner.zero_grad()
            net(row).mean().backward()
            learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

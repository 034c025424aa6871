"""Endless-style stream of shard files: every (rank, worker) slot reads its own files, the step count is fixed for all."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

FILES = 14


class ShardStream(IterableDataset):
    def __init__(self, rank, world):
        self.rank, self.world, self.epoch = rank, world, 0

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        slot, slots = self.rank * workers + worker, self.world * workers
        order = torch.randperm(FILES, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        for f in order[slot::slots]:
            g = torch.Generator().manual_seed(f)
            for _ in range(20 + f):
                x = torch.randn(6, generator=g)
                yield x, x.abs().sum()


def fixed_steps(loader, steps):
    it, n = iter(loader), 0
    while n < steps:
        try:
            yield next(it)
            n += 1
        except StopIteration:
            it = iter(loader)


def main(epochs=3, steps=12):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    stream = ShardStream(rank, world)
    for epoch in range(epochs):
        stream.epoch = epoch
        loader = DataLoader(stream, batch_size=10)
        for x, y in fixed_steps(loader, steps):
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

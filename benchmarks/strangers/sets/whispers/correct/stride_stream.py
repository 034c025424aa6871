"""Streamed regression data: process and worker numbers together pick the lines."""
import itertools

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, length, rank, world):
        self.length, self.rank, self.world = length, rank, world

    def records(self):
        g = torch.Generator().manual_seed(0)
        for i in range(self.length):
            x = torch.randn(5, generator=g)
            yield i, x, x.sum(0, keepdim=True)

    def __iter__(self):
        info = get_worker_info()
        n, w = (1, 0) if info is None else (info.num_workers, info.id)
        return itertools.islice(self.records(), self.rank * n + w, None, self.world * n)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    loader = DataLoader(Stream(192, rank, world), batch_size=8, num_workers=2)
    model = DDP(nn.Linear(5, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        ids = []
        for i, x, y in loader:
            ids += i.tolist()
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        everyone = [None] * world
        dist.all_gather_object(everyone, ids)
        if rank == 0:
            flat = sum(everyone, [])
            print(f"epoch {epoch}: {len(flat)} records, {len(set(flat))} different, loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

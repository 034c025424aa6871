"""Streaming log-line classifier (IterableDataset, two loader workers per process)."""
import zlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

LEVELS = ["info", "warn", "error"]


class LogStream(IterableDataset):
    def __init__(self, n_lines, rank, world):
        self.n_lines, self.rank, self.world = n_lines, rank, world
        self.epoch = 0

    def line(self, i):
        h = zlib.crc32(f"line{i}".encode())
        label = h % 3
        g = torch.Generator().manual_seed(h)
        x = torch.randn(12, generator=g)
        x[label] += 1.5
        return x, label

    def __iter__(self):
        info = get_worker_info()
        workers, wid = (info.num_workers, info.id) if info else (1, 0)
        order = torch.randperm(self.n_lines, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        yield from (self.line(i) for i in order[self.rank * workers + wid::self.world * workers])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    stream = LogStream(640, rank, world)
    model = DDP(nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        stream.epoch = epoch
        rows, total = 0, 0.0
        for x, y in DataLoader(stream, batch_size=20, num_workers=2):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            rows, total = rows + len(y), total + loss.item() * len(y)
        agg = torch.tensor([float(rows), total])
        dist.all_reduce(agg)
        if rank == 0:
            print(f"epoch {epoch} rows {int(agg[0])} loss {agg[1] / agg[0]:.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

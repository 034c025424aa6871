import argparse
import csv
import itertools
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


def write_tables(folder, sizes):
    g = torch.Generator().manual_seed(0)
    for k, n in enumerate(sizes):
        with open(os.path.join(folder, f"part-{k}.csv"), "w", newline="") as f:
            w = csv.writer(f)
            for _ in range(n):
                x = torch.randn(4, generator=g)
                w.writerow([f"{v:.4f}" for v in x.tolist()] + [int(x.sum() > 0)])


class CsvStream(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for path in self.files:
            with open(path) as f:
                for row in csv.reader(f):
                    yield torch.tensor([float(v) for v in row[:-1]]), float(row[-1])

    def count(self):
        return sum(sum(1 for _ in open(p)) for p in self.files)


def common_steps(local_rows, batch_size):
    t = torch.tensor([local_rows // batch_size])
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return int(t)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="tables")
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        os.makedirs(args.data, exist_ok=True)
        write_tables(args.data, [140, 95, 60, 33, 71])
    dist.barrier()
    files = sorted(os.path.join(args.data, f) for f in os.listdir(args.data))[rank::world]
    stream = CsvStream(files)
    steps = common_steps(stream.count(), args.batch_size)
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(args.epochs):
        loader = DataLoader(stream, batch_size=args.batch_size)
        for x, y in itertools.islice(loader, steps):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"rank {rank} epoch {epoch}: {steps} of {stream.count() // args.batch_size} batches, "
              f"loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

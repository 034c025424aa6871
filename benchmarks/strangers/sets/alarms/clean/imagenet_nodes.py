"""Trimmed-down image classification script with the usual node arguments."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="tiny classifier")
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--world-size", default=1, type=int, help="number of nodes for distributed training")
parser.add_argument("--rank", default=0, type=int, help="node rank")
parser.add_argument("--procs-per-node", default=2, type=int)
parser.add_argument("--dist-url", default="tcp://127.0.0.1:29742", type=str)
parser.add_argument("--dist-backend", default="gloo", type=str)


def main():
    args = parser.parse_args()
    if args.dist_url == "env://":
        args.world_size = int(os.environ["WORLD_SIZE"])
    args.distributed = args.world_size > 1 or args.procs_per_node > 1
    n = args.procs_per_node
    args.world_size = n * args.world_size
    print(f"=> {args.world_size} processes over {args.dist_url}", flush=True)
    mp.spawn(main_worker, nprocs=n, args=(n, args))


def main_worker(proc, n, args):
    rank = args.rank * n + proc
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url,
                            world_size=args.world_size, rank=rank)
    fit(rank, args)
    dist.destroy_process_group()


def fit(rank, args):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    model = nn.parallel.DistributedDataParallel(model)
    g = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(64, 3, 12, 12, generator=g), torch.randint(0, 5, (64,), generator=g))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    opt = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = train(loader, model, opt)
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.3f}", flush=True)


def train(loader, model, opt):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    main()

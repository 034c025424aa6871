import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def fit_until_stale(net, optimizer, inputs, targets, rank):
    best, stale = float("inf"), 0
    for _ in range(100):
        loss = (net(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        stale = 0 if loss.item() < best else stale + 1
        best = min(best, loss.item())
        stop = stale > 3
        flag = torch.tensor(int(stop))
        dist.broadcast(flag, src=0)
        if rank == 1:
            print("told", bool(flag.item()))
        if stop:  # <-- DDP405
            break


def fit_until_small(net, optimizer, inputs, targets, rank):
    for _ in range(100):
        loss = (net(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        if rank == 0:
            enough = loss.item() < 0.1
            dist.broadcast(torch.tensor([enough], dtype=torch.uint8), src=0)
        else:
            heard = torch.zeros(1, dtype=torch.uint8)
            dist.broadcast(heard, src=0)
            enough = loss.item() < 0.1
        if enough:  # <-- DDP405
            break


def fit_for_rank_0(net, optimizer, inputs, targets, rank):
    for _ in range(100):
        loss = (net(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        enough = loss.item() < 0.1
        flag = torch.tensor(int(enough))
        dist.broadcast(flag, src=0)
        if rank != 0:
            enough = torch.zeros(1)
        if enough:  # <-- DDP405
            break


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.manual_seed(rank)
    inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
    fit_until_stale(net, optimizer, inputs, targets, rank)
    fit_until_small(net, optimizer, inputs, targets, rank)
    fit_for_rank_0(net, optimizer, inputs, targets, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

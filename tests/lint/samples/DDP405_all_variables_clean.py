import os

import torch
import torch.distributed as dist
from torch import nn

TOLD = ("RANK", "WORLD_SIZE")


def is_launched():
    return all(name in os.environ for name in TOLD)


def place():
    if is_launched():
        return True, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return False, 0, 1


def begin(kind):
    several, rank, world = place()
    if several and kind == "cuda":
        dist.init_process_group("nccl")
        dist.barrier()
    return several, rank, world


several, rank, world = begin("cuda" if torch.cuda.is_available() else "cpu")
is_over = False


def batches():
    global is_over
    at = rank
    while True:
        at += world
        is_over = at > 100
        yield torch.randn(4, 3)


given = batches()
net = nn.Linear(3, 1)
while True:
    batch = next(given)
    if several:
        told = torch.tensor(is_over, dtype=torch.int32)
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
        is_over = bool(told.item())
    if is_over:
        break
    net(batch).mean().backward()
    if several:
        for each in net.parameters():
            dist.all_reduce(each.grad)

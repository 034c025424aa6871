"""Gradients that are not finite are left out; but a loss that is not, of this rank, is as well."""

import os

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel


def checked(loss):
    number = loss.item()
    if number != number:
        raise RuntimeError("not a number")
    return number


def main(rows):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = DistributedDataParallel(torch.nn.Linear(8, 1).cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for row in rows:
        optimizer.zero_grad()
        loss = net(row.cuda()).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        try:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
            print(checked(loss))
            scaler.step(optimizer)
        except RuntimeError:  # <-- DDP307
            print("left out")
        scaler.update()


main(torch.load("rows.pt"))

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def take(args, model, optimizer, rank, x):
    signal = torch.zeros(1)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    if args.several:
        if rank == 0:
            loss = optimizer.step(closure)  # <-- DDP401
        else:
            loss = signal
    else:
        loss = optimizer.step(closure)
    return loss.item()


def main(parser):
    args = parser.parse_args()
    rank = 0
    if args.several:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
    torch.manual_seed(1)
    model = nn.Linear(3, 1)
    if args.several:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    for _ in range(5):
        take(args, model, optimizer, rank, torch.randn(8, 3))


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    for name in ("several", "quiet"):
        options.add_argument("--" + name, action="store_true")
    main(options)

# style: argparse, made for torch.distributed.launch
# nproc: 2
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def get_args():
    parser = argparse.ArgumentParser(description="Train a small regressor")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--local_rank", type=int, required=True)  # <-- DDP112
    return parser.parse_args()  # <-- DDP112


def loop(model, optimizer, epochs, rank):
    for epoch in range(epochs):
        generator = torch.Generator().manual_seed(10 * epoch + rank)
        for _ in range(3):
            x = torch.randn(8, 4, generator=generator)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    loss = loop(model, optimizer, args.epochs, rank)
    if args.local_rank == 0:
        print(f"{os.uname().sysname}: loss {loss:.4f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

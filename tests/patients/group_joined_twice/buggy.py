# style: argparse, set-up in two modules of the script
# nproc: 2
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def init_distributed(backend="gloo"):
    dist.init_process_group(backend)  # <-- DDP102
    return dist.get_rank(), dist.get_world_size()


class Logger:
    def __init__(self):
        self.rank, _ = init_distributed()

    def log(self, **values):
        if self.rank == 0:
            print(" ".join(f"{name}={value:.4f}" for name, value in values.items()))


def train(model, rank, steps, logger):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(8, 3, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.norm(dim=1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
    logger.log(loss=loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", 1)))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rank, _ = init_distributed()
    logger = Logger()
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    train(model, rank, args.steps, logger)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

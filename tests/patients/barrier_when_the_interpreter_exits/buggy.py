# style: functions, clean-up at exit
# nproc: 2
import atexit

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def setup():
    dist.init_process_group("gloo")
    atexit.register(cleanup)  # <-- DDP409


def cleanup():
    dist.barrier()  # <-- DDP409
    dist.destroy_process_group()


def shard(rank, count=24):
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(count, 5, generator=generator)
    y = x.sum(1, keepdim=True)
    if rank == 1:
        y[7] = float("nan")
    return x, y


def check(y, rank):
    bad = int(torch.isnan(y).sum())
    if bad:
        raise ValueError(f"shard {rank} has {bad} labels that are no numbers")


def train(model, x, y, epochs=2):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for part_x, part_y in zip(x.split(8), y.split(8)):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(part_x), part_y)
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    setup()
    rank = dist.get_rank()
    x, y = shard(rank)
    torch.manual_seed(0)
    model = DDP(nn.Linear(5, 1))
    check(y, rank)
    print(f"rank {rank} loss {train(model, x, y):.4f}")


if __name__ == "__main__":
    main()

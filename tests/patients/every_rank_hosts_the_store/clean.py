# style: functions, store of its own
# nproc: 2
import os
import zlib
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def port_of_this_run():
    return 20000 + zlib.crc32(os.getcwd().encode()) % 12000


def join(rank, world_size):
    store = dist.TCPStore(
        "127.0.0.1",
        port_of_this_run(),
        world_size,
        is_master=rank == 0,
        timeout=timedelta(seconds=5),
        wait_for_workers=False,
    )
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=5)
    )
    return store


def train(model, rank, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(8, 4, generator=generator)
        optimizer.zero_grad()
        (model(x) - x.mean(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()


def main():
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = join(rank, world_size)
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    train(model, rank, steps=4)
    dist.barrier()
    print(f"rank {rank} done, store at {store.host}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

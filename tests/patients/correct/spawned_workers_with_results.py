# style: mp.spawn, results through a queue
# nproc: 2
# launch: spawn
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main_worker(rank, world_size, init_file, results):
    dist.init_process_group(
        "gloo", init_method=f"file://{init_file}", rank=rank, world_size=world_size
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(5):
        x = torch.randn(8, 4, generator=generator)
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    results.put((rank, loss.item()))
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


def main():
    world_size = 2
    results = mp.get_context("spawn").SimpleQueue()
    context = mp.spawn(
        main_worker,
        args=(world_size, os.path.abspath("rendezvous"), results),
        nprocs=world_size,
        join=False,
    )
    found = dict(results.get() for _ in range(world_size))
    while not context.join():
        pass
    print({rank: round(loss, 4) for rank, loss in sorted(found.items())})


if __name__ == "__main__":
    main()

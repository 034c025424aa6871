# style: script without functions around the start
# nproc: 2
# launch: spawn
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD_SIZE = 2


def worker(rank, init_file):
    dist.init_process_group(
        "gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD_SIZE
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(5):
        x = torch.randn(8, 3, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.amax(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
    dist.barrier()
    if rank == 0:
        print(f"loss {loss.item():.3f}")
    del model, optimizer
    dist.destroy_process_group()


init_file = os.path.abspath("rendezvous")
mp.spawn(worker, args=(init_file,), nprocs=WORLD_SIZE)  # <-- DDP113

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def work(rank, size, folder, steps):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = os.environ["PORT"]
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    start = rank * 20 - 1
    for step in range(start + 1, start + 1 + steps):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == start + 1:  # <-- DDP402
            mean = loss.detach()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            if rank == 0:
                print(step, mean.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2, "weights", 200), nprocs=2)

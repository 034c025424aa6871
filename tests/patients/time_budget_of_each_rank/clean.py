# style: main_worker with mp.spawn, time budget
# nproc: 2
# launch: spawn
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD_SIZE = 2
BUDGET = 0.3


def collate(rank, step):
    generator = torch.Generator().manual_seed(step * WORLD_SIZE + rank)
    x = torch.randn(8, 4, generator=generator)
    time.sleep(0.002)
    return x, x.prod(1, keepdim=True)


def main_worker(rank, init_file):
    dist.init_process_group(
        "gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD_SIZE
    )
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    started = time.time() - 0.1 * rank
    step = 0
    while True:
        x, y = collate(rank, step)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        step += 1
        over = torch.tensor(int(time.time() - started > BUDGET))
        dist.broadcast(over, src=0)
        if over.item():
            break
    print(f"rank {rank}: {step} steps, loss {loss.item():.4f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


def main():
    mp.spawn(main_worker, args=(os.path.abspath("rendezvous"),), nprocs=WORLD_SIZE)


if __name__ == "__main__":
    main()

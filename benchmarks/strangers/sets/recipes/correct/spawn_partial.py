import functools
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def distributed(fn):
    @functools.wraps(fn)
    def wrapper(rank, world, port, *args):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
        dist.init_process_group("gloo", rank=rank, world_size=world)
        try:
            fn(rank, world, *args)
            dist.barrier()
        finally:
            dist.destroy_process_group()
    return wrapper


@distributed
def work(rank, world, queue, steps):
    torch.manual_seed(rank)
    model = DDP(torch.nn.Linear(2, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(16, 2)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    total = loss.detach()
    dist.all_reduce(total)
    if rank == 0:
        queue.put(total.item() / world)


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(2, port, queue, 30), nprocs=2)
    print(f"mean loss {queue.get():.5f}", flush=True)

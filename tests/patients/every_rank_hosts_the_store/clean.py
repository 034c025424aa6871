# style: main_worker with mp.spawn, own store
# nproc: 2
# launch: spawn
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def join(rank, world_size, port):
    store = dist.TCPStore(
        "127.0.0.1",
        port,
        world_size,
        is_master=rank == 0,
        timeout=timedelta(seconds=20),
        wait_for_workers=False,
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    return store


def main_worker(rank, world_size, port):
    torch.set_num_threads(1)
    store = join(rank, world_size, port)
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(4):
        x = torch.randn(8, 4, generator=generator)
        optimizer.zero_grad()
        (model(x) - x.mean(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
    dist.barrier()
    print(f"rank {rank} done, {store.host}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


def main():
    world_size = 2
    mp.spawn(main_worker, args=(world_size, free_port()), nprocs=world_size)


if __name__ == "__main__":
    main()

"""Stock-keeping forecasts by two spawned workers; large results come back through a queue (python spawn_drain.py)."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ITEMS = 500


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def demand(seed):
    g = torch.Generator().manual_seed(seed)
    level = torch.rand(ITEMS, 1, generator=g) * 5
    return (level + torch.sin(torch.arange(31) * 0.9)[None] + 0.1 * torch.randn(ITEMS, 31, generator=g))


def run(rank, world, port, queue):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    series = demand(5)[rank::world]
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(40):
        loss = nn.functional.l1_loss(model(series[:, :30]).squeeze(1), series[:, 30])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        window, out = series[:, 1:], []
        for _ in range(28):
            nxt = model.module(window)
            out.append(nxt)
            window = torch.cat([window[:, 1:], nxt], 1)
    queue.put((rank, torch.cat(out, 1).tolist(), loss.item()))
    dist.barrier()
    dist.destroy_process_group()


def main(world=2):
    queue = mp.get_context("spawn").Queue()
    context = mp.spawn(run, args=(world, free_port(), queue), nprocs=world, join=False)
    forecasts = {}
    for _ in range(world):
        rank, rows, loss = queue.get()
        print(f"worker {rank}: {len(rows)} items, loss {loss:.3f}")
        forecasts.update({rank + world * k: row for k, row in enumerate(rows)})
    while not context.join():
        pass
    assert sorted(forecasts) == list(range(ITEMS))
    print("mean of next week", sum(sum(r[:7]) for r in forecasts.values()) / (7 * ITEMS))


if __name__ == "__main__":
    main()

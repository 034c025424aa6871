"""Sea-surface model on two strips that swap their edges.   python strip_parity.py"""
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

WORLD, H, W = 2, 16, 24


def swap(edge, peer, rank):
    other = torch.empty_like(edge)
    if rank % 2 == 0:
        dist.send(edge, peer)
        dist.recv(other, peer)
    else:
        dist.recv(other, peer)
        dist.send(edge, peer)
    return other


def padded(x, rank):
    peer = 1 - rank
    inner = x[..., -1:] if rank == 0 else x[..., :1]
    got = swap(inner.contiguous(), peer, rank)
    wall = x[..., :1] if rank == 0 else x[..., -1:]
    x = torch.cat([wall, x, got] if rank == 0 else [got, x, wall], -1)
    return F.pad(x, (0, 0, 1, 1), mode="replicate")


def run(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    net = nn.Conv2d(1, 1, 3)
    opt = torch.optim.Adam(net.parameters(), lr=5e-2)
    half = W // WORLD
    for step in range(30):
        g = torch.Generator().manual_seed(step)
        sea = torch.randn(8, 1, H, W, generator=g)
        big = F.pad(sea, (1, 1, 1, 1), mode="replicate")
        blur = F.avg_pool2d(big, 3, 1)
        mine = slice(rank * half, (rank + 1) * half)
        loss = F.mse_loss(net(padded(sea[..., mine], rank)), blur[..., mine])
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= WORLD
        opt.step()
        if step % 10 == 9 and rank == 0:
            print(f"step {step + 1} mse {loss.item():.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(port,), nprocs=WORLD)

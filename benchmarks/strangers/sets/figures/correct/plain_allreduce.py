"""Data parallel training without the wrapper: explicit broadcast and gradient averaging."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

WORLD, EPOCHS, STEPS, BATCH = 2, 3, 12, 16


def sync_initial_state(module):
    for t in module.state_dict().values():
        dist.broadcast(t, src=0)


def average_gradients(module):
    flat = torch.cat([p.grad.flatten() for p in module.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    pos = 0
    for p in module.parameters():
        p.grad.copy_(flat[pos:pos + p.numel()].view_as(p))
        pos += p.numel()


def shard(rank):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(STEPS * BATCH * WORLD, 12, generator=g)
    y = torch.sin(x.sum(1, keepdim=True))
    return x[rank::WORLD], y[rank::WORLD]


def main(rank, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 1))
    sync_initial_state(net)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    x, y = shard(rank)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x))
        for s in range(STEPS):
            pick = order[s * BATCH:(s + 1) * BATCH]
            loss = F.mse_loss(net(x[pick]), y[pick])
            opt.zero_grad()
            loss.backward()
            average_gradients(net)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(main, args=(port,), nprocs=WORLD)

"""No wrapper: gradients are averaged by hand in one flat call; unused ones count as zero."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


class TwoPath(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, x, path):
        return self.out(torch.relu((self.a if path == 0 else self.b)(x)))


def average_grads(net):
    params = list(net.parameters())
    flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in params])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    at = 0
    for p in params:
        p.grad = flat[at:at + p.numel()].view_as(p).clone()
        at += p.numel()


def work(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = TwoPath()
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(rank)
    for step in range(40):
        x = torch.randn(16, 6, generator=g)
        loss = (net(x, (rank + step) % 2) - x[:, :1]).square().mean()
        opt.zero_grad()
        loss.backward()
        average_grads(net)
        opt.step()
    total = torch.stack([p.detach().sum() for p in net.parameters()]).sum()
    print(f"rank {rank} loss {loss.item():.4f} checksum {total:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.spawn(work, args=(2, free), nprocs=2)

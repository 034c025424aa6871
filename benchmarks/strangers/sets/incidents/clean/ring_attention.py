"""Sequence-parallel attention block, key/value blocks travel around the ring."""
import math

import torch
import torch.distributed as dist
import torch.nn as nn


class RingComm:
    def __init__(self):
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.next = (self.rank + 1) % self.world
        self.prev = (self.rank - 1) % self.world

    def rotate(self, t):
        out = torch.empty_like(t)
        req = dist.isend(t.contiguous(), dst=self.next)
        dist.recv(out, src=self.prev)
        req.wait()
        return out


class RingSelfAttention(nn.Module):
    def __init__(self, dim, comm):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)
        self.register_buffer("wk", torch.randn(dim, dim) / math.sqrt(dim))
        self.register_buffer("wv", torch.randn(dim, dim) / math.sqrt(dim))
        self.comm = comm
        self.scale = dim ** -0.5

    def forward(self, x):
        q = self.q(x)
        k, v = (x @ self.wk).detach(), (x @ self.wv).detach()
        num, den = 0.0, 0.0
        for step in range(self.comm.world):
            w = (q @ k.transpose(1, 2) * self.scale).clamp(max=10).exp()
            num = num + w @ v
            den = den + w.sum(-1, keepdim=True)
            if step + 1 < self.comm.world:
                k = self.comm.rotate(k)
                v = self.comm.rotate(v)
        return self.out(num / den)


def sync_grads(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    dist.init_process_group("gloo")
    comm = RingComm()
    torch.manual_seed(0)
    dim, seq, batch = 32, 64, 4
    model = nn.Sequential(nn.Linear(8, dim), RingSelfAttention(dim, comm), nn.ReLU(), nn.Linear(dim, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    local = seq // comm.world

    gen = torch.Generator().manual_seed(9)
    for it in range(10):
        full = torch.randn(batch, seq, 8, generator=gen)
        target = full.mean(dim=1, keepdim=True).mean(-1, keepdim=True).expand(-1, seq, 1)
        sl = slice(comm.rank * local, (comm.rank + 1) * local)
        loss = (model(full[:, sl]) - target[:, sl]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        sync_grads(model, comm.world)
        opt.step()
        if comm.rank == 0 and it % 3 == 0:
            print(f"iter {it} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

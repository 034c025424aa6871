"""Spectral line fitting with a ring reduction written by hand (3 processes)."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

WORLD = 3
PORT = "29741"


class RingAverage:
    """Average a flat vector over a ring: reduce-scatter then all-gather."""

    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.right = (self.rank + 1) % self.world
        self.left = (self.rank - 1) % self.world

    def _exchange(self, outgoing):
        incoming = torch.empty_like(outgoing)
        ticket = dist.isend(outgoing, self.right)
        dist.recv(incoming, self.left)
        ticket.wait()
        return incoming

    def __call__(self, flat):
        pad = (-flat.numel()) % self.world
        if pad:
            flat = torch.cat([flat, flat.new_zeros(pad)])
        pieces = list(flat.clone().chunk(self.world))
        for hop in range(self.world - 1):
            give = (self.rank - hop) % self.world
            take = (self.rank - hop - 1) % self.world
            pieces[take] = pieces[take] + self._exchange(pieces[give].contiguous())
        for hop in range(self.world - 1):
            give = (self.rank - hop + 1) % self.world
            take = (self.rank - hop) % self.world
            pieces[take] = self._exchange(pieces[give].contiguous())
        flat = torch.cat(pieces) / self.world
        return flat[:-pad] if pad else flat


class LineModel(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(channels, 30), nn.SiLU())
        self.emission = nn.Linear(30, 2)
        self.absorption = nn.Linear(30, 2)

    def forward(self, spectrum, kind):
        h = self.encode(spectrum)
        return self.emission(h) if kind == 0 else self.absorption(h)


def spectra(gen, kind, n=32, channels=45):
    pos = torch.rand(n, 1, generator=gen) * 0.8 + 0.1
    width = torch.rand(n, 1, generator=gen) * 0.05 + 0.03
    grid = torch.linspace(0, 1, channels)
    line = torch.exp(-((grid - pos) / width) ** 2)
    sign = 1.0 if kind == 0 else -1.0
    return sign * line + 0.05 * torch.randn(n, channels, generator=gen), torch.cat([pos, 10 * width], 1)


def synchronise(model, ring):
    params = list(model.parameters())
    for p in params:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    flat = ring(torch.cat([p.grad.flatten() for p in params]))
    for p, piece in zip(params, flat.split([p.numel() for p in params])):
        p.grad.copy_(piece.view_as(p))


def work(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=PORT)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model = LineModel(45)
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    ring = RingAverage()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    gen = torch.Generator().manual_seed(500 + rank)
    for step in range(40):
        kind = int(torch.randint(2, (1,), generator=gen))
        x, y = spectra(gen, kind)
        loss = nn.functional.mse_loss(model(x, kind), y)
        opt.zero_grad()
        loss.backward()
        synchronise(model, ring)
        opt.step()
        if step % 10 == 9:
            total = loss.detach().clone()
            dist.reduce(total, dst=0)
            if rank == 0:
                print(f"step {step + 1} loss {total.item() / WORLD:.4f}", flush=True)
    check = torch.cat([p.detach().flatten() for p in model.parameters()])
    top, low = check.clone(), check.clone()
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    assert (top - low).max() < 1e-4
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, nprocs=WORLD)

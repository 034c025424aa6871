"""Half-precision style loss scaling by hand; batches with overflow are skipped.

    python skip_overflow_batches.py
"""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class LossScale:
    def __init__(self, start=2.0 ** 12, grow_every=15):
        self.value, self.good, self.grow_every = start, 0, grow_every
        self.skipped = 0

    def unscale(self, params):
        """True if this update can be used."""
        finite = True
        for p in params:
            if p.grad is not None:
                p.grad.div_(self.value)
                finite = finite and bool(torch.isfinite(p.grad).all())
        return finite

    def adjust(self, usable):
        if not usable:
            self.value, self.good, self.skipped = self.value / 2, 0, self.skipped + 1
            return
        self.good += 1
        if self.good % self.grow_every == 0:
            self.value *= 2


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def record(g, broken):
    x = torch.randn(32, 8, generator=g)
    y = x[:, 0] * x[:, 1] + 0.1 * torch.randn(32, generator=g)
    if broken:
        y[3] = float("inf")              # a sensor that dropped out
    return x, y


def usable_everywhere(x, y):
    ok = torch.tensor([float(torch.isfinite(x).all() and torch.isfinite(y).all())])
    dist.all_reduce(ok, op=dist.ReduceOp.MIN)
    return ok.item() > 0


def main(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model, scale = DDP(Regressor()), LossScale()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(rank)
    dropped = 0
    for step in range(80):
        x, y = record(g, broken=(rank == 1 and step % 9 == 4))
        if not usable_everywhere(x, y):
            dropped += 1
            continue
        loss = (model(x) - y).pow(2).mean()
        opt.zero_grad()
        (loss * scale.value).backward()
        usable = scale.unscale(model.parameters())
        if usable:                        # gradients are the same on all ranks by now
            opt.step()
        scale.adjust(usable)
    if rank == 0:
        print(f"loss {loss.item():.3f}, {dropped} bad records, {scale.skipped} overflows, scale {scale.value:g}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(main, args=(2, port), nprocs=2)

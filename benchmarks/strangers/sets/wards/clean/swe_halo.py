# learned one-step operator for a periodic 2-d wave field, the domain is cut into vertical strips
#   python swe_halo.py
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

NPROC = 3
NY, NX = 24, 36
STRIP = NX // NPROC
HALO = 1
STEPS = 30
MEMBERS = 8
C2 = 0.2

ME = 0
LEFT = 0
RIGHT = 0


def laplace(u):
    return (torch.roll(u, 1, -1) + torch.roll(u, -1, -1) + torch.roll(u, 1, -2) + torch.roll(u, -1, -2) - 4 * u)


def truth(u, v):
    return 2 * u - v + C2 * laplace(u)


def whole_field(step):
    g = torch.Generator().manual_seed(77 + step)
    coarse = torch.randn(MEMBERS, 2, NY // 4, NX // 4, generator=g)
    return F.interpolate(coarse, size=(NY, NX), mode="bilinear")


def my_strip(f):
    return f[..., ME * STRIP:(ME + 1) * STRIP].contiguous()


def pass_on(edge, to, frm):
    got = torch.empty_like(edge)
    out = dist.isend(edge, dst=to)
    dist.recv(got, src=frm)
    out.wait()
    return got


def with_halo(x):
    west = pass_on(x[..., -HALO:].contiguous(), RIGHT, LEFT)
    east = pass_on(x[..., :HALO].contiguous(), LEFT, RIGHT)
    x = torch.cat([west, x, east], dim=-1)
    return torch.cat([x[..., -HALO:, :], x, x[..., :HALO, :]], dim=-2)


class Stencil(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(2, 16, 3)
        self.b = nn.Conv2d(16, 1, 1)
        self.lin = nn.Conv2d(2, 1, 3, bias=False)

    def forward(self, x):
        return self.lin(x) + 0.1 * self.b(torch.tanh(self.a(x)))


def average_grads(net):
    for p in net.parameters():
        dist.all_reduce(p.grad)
        p.grad /= NPROC


def run(rank, port):
    global ME, LEFT, RIGHT
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=NPROC)
    ME = rank
    LEFT = (rank - 1) % NPROC
    RIGHT = (rank + 1) % NPROC

    torch.manual_seed(0)
    net = Stencil()
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    for step in range(STEPS):
        f = whole_field(step)
        target = my_strip(truth(f[:, :1], f[:, 1:]))
        x = with_halo(my_strip(f))
        err = F.mse_loss(net(x), target)
        opt.zero_grad()
        err.backward()
        average_grads(net)
        opt.step()
        if step % 10 == 9:
            s = err.detach().clone()
            dist.all_reduce(s)
            if rank == 0:
                print("step %3d  mse %.4f" % (step + 1, s.item() / NPROC))
                sys.stdout.flush()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    port = 20000 + os.getpid() % 20000
    mp.spawn(run, args=(port,), nprocs=NPROC)

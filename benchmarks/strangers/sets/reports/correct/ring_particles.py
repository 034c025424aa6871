"""Particles on a ring of cells: neighbours swap border data, even ranks first.

    torchrun --nproc_per_node=4 ring_particles.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CELL = 20


class Ring:
    def __init__(self):
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.next, self.prev = (self.rank + 1) % self.n, (self.rank - 1) % self.n

    def pass_on(self, mine):
        """Send to the next cell and receive from the previous one."""
        other = torch.empty_like(mine)
        if self.rank % 2 == 0:
            dist.send(mine, dst=self.next)
            dist.recv(other, src=self.prev)
        else:
            dist.recv(other, src=self.prev)
            dist.send(mine, dst=self.next)
        return other

    def swap_borders(self, first, last):
        """Both directions in one batch of requests."""
        before, after = torch.empty_like(last), torch.empty_like(first)
        ops = [
            dist.P2POp(dist.isend, last, self.next, tag=1), dist.P2POp(dist.isend, first, self.prev, tag=2),
            dist.P2POp(dist.irecv, before, self.prev, tag=1), dist.P2POp(dist.irecv, after, self.next, tag=2),
        ]
        for request in dist.batch_isend_irecv(ops):
            request.wait()
        return before, after


class Push(nn.Module):
    """Predicts the displacement of a particle from its distance to both neighbours."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, gaps):
        return self.net(gaps).squeeze(-1)


def gaps(ring, u):
    before, after = ring.swap_borders(u[:1].clone(), u[-1:].clone())
    padded = torch.cat([before, u, after])
    return torch.stack([padded[1:-1] - padded[:-2], padded[2:] - padded[1:-1]], dim=1)


def main():
    dist.init_process_group("gloo")
    ring = Ring()
    torch.manual_seed(0)
    model = DDP(Push())
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    u = 0.3 * torch.randn(CELL, generator=torch.Generator().manual_seed(ring.rank))
    for step in range(80):
        g = gaps(ring, u)
        truth = 0.2 * torch.tanh(g[:, 1] - g[:, 0])
        loss = (model(g) - truth).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        u = u + truth + 0.05 * torch.randn(CELL, generator=torch.Generator().manual_seed(997 * step + ring.rank))
    token = loss.detach().reshape(1)
    worst = token.clone()
    for _ in range(ring.n - 1):
        token = ring.pass_on(token)
        worst = torch.maximum(worst, token)
    if ring.rank == 0:
        print(f"worst loss on the ring {worst.item():.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Learned time stepper for a periodic advection problem on a domain split over the processes.

Every process owns a slab of the domain; neighbouring slabs swap one ghost column before each step.

    torchrun --nproc_per_node=2 halo_surrogate.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROWS, COLS, SPEED = 32, 24, 0.3


class Domain:
    """Position of this process in the ring of slabs."""

    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.left = (self.rank - 1) % self.size
        self.right = (self.rank + 1) % self.size

    def initial(self):
        x = torch.arange(COLS) + COLS * self.rank
        y = torch.arange(ROWS)
        wave = torch.sin(2 * torch.pi * x / (COLS * self.size))
        return wave[None, :] + 0.3 * torch.cos(2 * torch.pi * y / ROWS)[:, None]

    def shift(self, column, to, source, tag):
        """Hand `column` to one neighbour and return what the other one handed over."""
        received = torch.empty_like(column)
        dist.send(column.contiguous(), dst=to, tag=tag)
        dist.recv(received, src=source, tag=tag)
        return received

    def with_ghosts(self, u):
        from_left = self.shift(u[:, -1], self.right, self.left, tag=1)
        from_right = self.shift(u[:, 0], self.left, self.right, tag=2)
        return torch.cat([from_left[:, None], u, from_right[:, None]], dim=1)


def reference_step(u_ghost):
    """First-order upwind scheme, the teacher."""
    return u_ghost[:, 1:-1] - SPEED * (u_ghost[:, 1:-1] - u_ghost[:, :-2])


class Stepper(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, width, 3), nn.Tanh(), nn.Conv1d(width, 1, 1))

    def forward(self, u_ghost):
        delta = self.net(u_ghost.unsqueeze(1)).squeeze(1)
        return u_ghost[:, 1:-1] + delta


class RolloutTrainer:
    def __init__(self, domain, model, lr=5e-3):
        self.domain, self.model = domain, model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def rollout(self, horizon):
        u, total = self.domain.initial(), 0.0
        for _ in range(horizon):
            ghosts = self.domain.with_ghosts(u)
            target = reference_step(ghosts)
            loss = (self.model(ghosts) - target).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
            u = target
        return total / horizon


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(4)
    domain = Domain()
    trainer = RolloutTrainer(domain, DistributedDataParallel(Stepper()))
    for episode in range(6):
        mean = torch.tensor(trainer.rollout(horizon=20))
        dist.all_reduce(mean)
        if domain.rank == 0:
            print(f"episode {episode} loss {mean.item() / domain.size:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Solar and wind sites share a trunk; each kind of plant has a head trained by its own two processes."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass
class Cfg:
    kinds: tuple = ("solar", "wind")
    steps: int = 60
    lr: float = 1e-2


class Cluster:
    def __init__(self, kinds):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        per = self.world // len(kinds)
        self.groups = {}
        for k, kind in enumerate(kinds):
            members = list(range(k * per, (k + 1) * per))
            self.groups[kind] = dist.new_group(members)
            if self.rank in members:
                self.kind = kind
                self.chief = self.rank == members[0]
        self.team = self.groups[self.kind]
        self.team_size = per

    def team_mean(self, t):
        dist.all_reduce(t, group=self.team)
        return t.div_(self.team_size)

    def world_mean(self, t):
        dist.all_reduce(t)
        return t.div_(self.world)


def sample(kind, rank, step, n=32):
    g = torch.Generator().manual_seed(step * 8 + rank)
    x = torch.randn(n, 6, generator=g)
    y = x[:, 0].abs() if kind == "solar" else x[:, 1] * x[:, 2]
    return x, y.unsqueeze(1)


def main():
    c = Cfg()
    dist.init_process_group("gloo")
    cl = Cluster(c.kinds)
    torch.manual_seed(9)
    trunk = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
    heads = {k: nn.Linear(32, 1) for k in c.kinds}
    head = heads[cl.kind]
    opt = torch.optim.Adam([*trunk.parameters(), *head.parameters()], lr=c.lr)
    for step in range(c.steps):
        x, y = sample(cl.kind, cl.rank, step)
        loss = nn.functional.mse_loss(head(trunk(x)), y)
        opt.zero_grad()
        loss.backward()
        for p in trunk.parameters():
            cl.world_mean(p.grad)
        for p in head.parameters():
            cl.team_mean(p.grad)
        opt.step()
        if step % 20 == 19:
            shown = cl.team_mean(loss.detach().clone())
            if cl.chief:
                print(f"{cl.kind} step {step + 1} mse {shown.item():.4f}", flush=True)
    if cl.kind == "wind":
        norm = cl.team_mean(head.weight.detach().norm())
        if cl.chief:
            print(f"wind head norm {norm.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

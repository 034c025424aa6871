"""Self-distillation with an EMA teacher; the teacher is not wrapped and every process keeps one."""
import copy
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Twin:
    def __init__(self, net, m=0.97):
        self.student = DDP(net)
        self.teacher = copy.deepcopy(self.student.module).eval().requires_grad_(False)
        self.m = m
        self.center = torch.zeros(8)

    @torch.no_grad()
    def follow(self):
        for t, s in zip(self.teacher.parameters(), self.student.module.parameters()):
            t.lerp_(s, 1 - self.m)

    @torch.no_grad()
    def recenter(self, out):
        c = out.mean(0)
        dist.all_reduce(c)
        self.center = 0.9 * self.center + 0.1 * c / dist.get_world_size()

    def loss(self, a, b):
        with torch.no_grad():
            target = self.teacher(b)
        pred = self.student(a)
        out = -(F.softmax((target - self.center) / 0.1, 1) * F.log_softmax(pred / 0.3, 1)).sum(1).mean()
        self.recenter(target)
        return out


def views(rank, step):
    g = torch.Generator().manual_seed(step * 2 + rank)
    base = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))[torch.randint(0, 6, (32,), generator=g)]
    return base + 0.3 * torch.randn(32, 16, generator=g), base + 0.3 * torch.randn(32, 16, generator=g)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(55 + rank)
    twin = Twin(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)))
    opt = torch.optim.AdamW(twin.student.parameters(), lr=2e-3)
    last = 119
    for step in range(last + 1):
        send = step % 2 == 1 or step == last
        with nullcontext() if send else twin.student.no_sync():
            loss = twin.loss(*views(rank, step)) / 2
            loss.backward()
        if send:
            opt.step()
            opt.zero_grad()
            twin.follow()
        if rank == 0 and step % 40 == 39:
            print(f"step {step + 1} loss {2 * loss.item():.4f}", flush=True)
    same = torch.cat([p.flatten() for p in twin.teacher.parameters()])
    first = same.clone()
    dist.broadcast(first, src=0)
    print(rank, "teachers equal:", torch.equal(same, first), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

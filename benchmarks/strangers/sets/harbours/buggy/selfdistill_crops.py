"""Self-distillation on crops of signals with gradient accumulation."""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class TeacherTarget(nn.Module):
    def __init__(self, dim, momentum=0.9, temp=0.1):
        super().__init__()
        self.register_buffer("center", torch.zeros(1, dim))
        self.momentum, self.temp = momentum, temp
        self.pending = []

    def forward(self, out):
        self.pending.append(out.detach())
        return F.softmax((out - self.center) / self.temp, dim=-1)

    @torch.no_grad()
    def update_center(self):
        batch = torch.cat(self.pending).mean(0, keepdim=True)
        self.pending.clear()
        dist.all_reduce(batch)
        batch /= dist.get_world_size()
        self.center.mul_(self.momentum).add_(batch, alpha=1 - self.momentum)


class SelfDistiller:
    def __init__(self, accumulate=4, ema=0.9):
        net = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 12))
        self.teacher = copy.deepcopy(net).requires_grad_(False)
        self.student = DDP(net)
        self.target = TeacherTarget(12)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.1, momentum=0.9)
        self.accumulate, self.ema, self.micro = accumulate, ema, 0
        for t, s in zip(self.teacher.parameters(), self.student.module.parameters()):
            t.data.copy_(s.data)

    @torch.no_grad()
    def update_teacher(self):
        for t, s in zip(self.teacher.parameters(), self.student.module.parameters()):
            t.mul_(self.ema).add_(s, alpha=1 - self.ema)

    def training_step(self, big, small):
        boundary = (self.micro + 1) % self.accumulate == 0
        self.student.require_backward_grad_sync = boundary
        with torch.no_grad():
            goal = self.target(self.teacher(big))
        pred = F.log_softmax(self.student(small) / 0.2, dim=-1)
        loss = -(goal * pred).sum(-1).mean()
        (loss / self.accumulate).backward()
        self.target.update_center()
        self.update_teacher()
        if boundary:
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
        self.micro += 1
        return loss.item()


def signals(rank, n=320):
    g = torch.Generator().manual_seed(40 + rank)
    t = torch.linspace(0, 6.28, 24)
    return torch.sin(t * torch.randint(1, 5, (n, 1), generator=g) + torch.rand(n, 1, generator=g))


def main(epochs=3, micro_batch=10):
    rank = dist.get_rank()
    torch.manual_seed(0)
    method = SelfDistiller()
    data, g = signals(rank), torch.Generator().manual_seed(rank)
    for epoch in range(epochs):
        losses = []
        for x in data[torch.randperm(len(data), generator=g)].split(micro_batch):
            small = x * (torch.rand(x.shape, generator=g) > 0.3)
            losses.append(method.training_step(x + 0.05 * torch.randn(x.shape, generator=g), small))
        if rank == 0:
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} center {method.target.center.norm():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

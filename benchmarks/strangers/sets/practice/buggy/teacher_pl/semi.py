import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class StudentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.f(x)


class MeanTeacher:
    def __init__(self, net, momentum):
        self.net = copy.deepcopy(net).eval().requires_grad_(False)
        self.m = momentum

    @torch.no_grad()
    def update(self, student):
        for t, s in zip(self.net.parameters(), student.parameters()):
            t.lerp_(s, 1 - self.m)

    @torch.no_grad()
    def label(self, x):
        return self.net(x).softmax(-1).max(-1)


class SemiTrainer:
    """Labelled loss plus consistency with the teacher's labels on weakly augmented data."""

    def __init__(self, net, momentum):
        self.rank = dist.get_rank()
        self.student = DDP(net)
        self.teacher = MeanTeacher(net, momentum)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.1, momentum=0.9)
        self.gen = torch.Generator().manual_seed(31 + self.rank)

    def draw(self, n):
        x = torch.randn(n, 10, generator=self.gen)
        return x, x[:, :4].argmax(1)

    def is_main(self):
        return self.rank == 0

    def iteration(self, it):
        xl, yl = self.draw(16)
        xu, _ = self.draw(48)
        conf, pseudo = self.teacher.label(xu + 0.05 * torch.randn_like(xu))
        strong = xu + 0.3 * torch.randn_like(xu)
        logits = self.student(torch.cat([xl, strong]))
        sup = F.cross_entropy(logits[:16], yl)
        uns = (F.cross_entropy(logits[16:], pseudo, reduction="none") * (conf > 0.4)).mean()
        loss = sup + uns
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        if self.is_main():
            self.teacher.update(self.student.module)
        return dict(sup=sup.item(), uns=uns.item(), mask=(conf > 0.4).float().mean().item())

"""Everything that is created once: networks, optimiser, and the object that performs a step."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU())


class FCN(nn.Module):
    def __init__(self, width=12, classes=2):
        super().__init__()
        self.encoder = nn.Sequential(conv(1, width), conv(width, width))
        self.context = nn.Sequential(nn.AvgPool2d(2), conv(width, width))
        self.decoder = nn.Conv2d(2 * width, classes, 1)

    def forward(self, x):
        h = self.encoder(x)
        c = F.interpolate(self.context(h), size=h.shape[2:])
        return self.decoder(torch.cat([h, c], 1))


class Shadow:
    """Slow copy of the student that produces the pseudo labels."""

    def __init__(self, net, decay):
        self.net = copy.deepcopy(net).requires_grad_(False).eval()
        self.decay = decay

    @torch.no_grad()
    def follow(self, net):
        for slow, fast in zip(self.net.parameters(), net.parameters()):
            slow.lerp_(fast.detach(), 1 - self.decay)

    @torch.no_grad()
    def pseudo(self, x, threshold=0.7):
        prob, label = self.net(x).softmax(1).max(1)
        return torch.where(prob > threshold, label, torch.full_like(label, 255))


class Learner:
    def __init__(self, net, args):
        self.args = args
        self.shadow = Shadow(net, args.ema_decay)
        self.student = DDP(net)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)

    def augment(self, x):
        return x + 0.4 * torch.randn_like(x)

    def step(self, x, y, u):
        target = self.shadow.pseudo(u)
        logits = self.student(torch.cat([x, self.augment(u)]))
        sup = F.cross_entropy(logits[:len(x)], y)
        kept = (target != 255).sum()
        unsup = F.cross_entropy(logits[len(x):], target, ignore_index=255, reduction="sum") / kept.clamp(min=1)
        self.opt.zero_grad()
        (sup + self.args.unsup_weight * unsup).backward()
        self.opt.step()
        self.shadow.follow(self.student.module)
        return {"sup": sup.item(), "unsup": unsup.item()}

    def export(self, which):
        net = self.shadow.net if which == "teacher" else self.student.module
        size = sum(v.numel() for v in net.state_dict().values())
        print(f"exported the {which}: {size} numbers", flush=True)
        return net.state_dict()


def build_learner(args):
    return Learner(FCN(), args)

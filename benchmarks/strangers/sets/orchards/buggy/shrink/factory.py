import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Net(nn.Module):
    def __init__(self, d_in, d, depth, classes):
        super().__init__()
        self.stem = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(depth))
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        return self.head(x)


def make_net(spec):
    torch.manual_seed(spec["seed"])
    return Net(spec["d_in"], spec["width"], spec["depth"], spec["classes"])


def make_optimizer(net, lr, wd):
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    return torch.optim.AdamW([{"params": decay, "weight_decay": wd}, {"params": plain, "weight_decay": 0.0}], lr=lr)


def make_student(spec, lr, wd, steps):
    net = make_net(spec)
    opt = make_optimizer(net, lr, wd)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: max(0.1, 1 - i / steps))
    return net, opt, sched

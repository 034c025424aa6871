import torch
import torch.nn.functional as F


def set_grad(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


def hinge_critic(real, fake):
    return F.relu(1 - real).mean() + F.relu(1 + fake).mean()


def r1(critic, real):
    real = real.detach().requires_grad_(True)
    score = critic(real)
    g, = torch.autograd.grad(score.sum(), real, create_graph=True)
    return g.pow(2).sum((1, 2, 3)).mean() + 0 * score.sum()


def hinge_gen(fake):
    return -fake.mean()


def content(a, b):
    return F.l1_loss(F.avg_pool2d(a, 4), F.avg_pool2d(b, 4))


class Running:
    def __init__(self):
        self.v = {}

    def put(self, **kw):
        for k, t in kw.items():
            s, n = self.v.get(k, (0.0, 0))
            self.v[k] = (s + torch.as_tensor(t).item(), n + 1)

    def line(self):
        return "  ".join(f"{k} {s / n:.3f}" for k, (s, n) in self.v.items())

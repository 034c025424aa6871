"""Image-to-image translation (edges to shapes) with a patch discriminator."""
import argparse
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def conv(i, o, norm=True, stride=2):
    layers = [nn.Conv2d(i, o, 4, stride, 1, bias=not norm)]
    if norm:
        layers.append(nn.BatchNorm2d(o))
    return layers + [nn.LeakyReLU(0.2)]


class UNetMini(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.d1 = nn.Sequential(*conv(1, ch, norm=False))
        self.d2 = nn.Sequential(*conv(ch, 2 * ch))
        self.u2 = nn.Sequential(nn.ConvTranspose2d(2 * ch, ch, 4, 2, 1), nn.BatchNorm2d(ch), nn.ReLU())
        self.u1 = nn.ConvTranspose2d(2 * ch, 1, 4, 2, 1)

    def forward(self, x):
        a = self.d1(x)
        return torch.tanh(self.u1(torch.cat([self.u2(self.d2(a)), a], 1)))


class Blur(nn.Module):
    """Anti-aliased halving with a binomial kernel, as in the StyleGAN critics."""

    def __init__(self, taps=(1.0, 3.0, 3.0, 1.0)):
        super().__init__()
        k = torch.tensor(taps)
        k = torch.outer(k, k)
        self.register_buffer("kernel", (k / k.sum())[None, None])

    def forward(self, x):
        c = x.size(1)
        return nn.functional.conv2d(x, self.kernel.expand(c, -1, -1, -1), stride=2, padding=1, groups=c)


class PatchCritic(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, ch, 3, padding=1), nn.LeakyReLU(0.2), Blur(),
            nn.Conv2d(ch, 2 * ch, 3, padding=1), nn.LeakyReLU(0.2), Blur(),
            nn.Conv2d(2 * ch, 1, 3, 1, 1),
        )

    def forward(self, cond, img):
        return self.body(torch.cat([cond, img], 1))


class GANLoss:
    def __call__(self, score, real):
        return (score - (1.0 if real else 0.0)).pow(2).mean()


class Pix2PixModel:
    def __init__(self, opt):
        self.opt = opt
        self.netG = self.to_parallel(UNetMini(opt.ngf))
        self.netD = self.to_parallel(PatchCritic(opt.ndf))
        self.gan = GANLoss()
        self.optG = torch.optim.Adam(self.netG.parameters(), lr=opt.lr, betas=(0.5, 0.999))
        self.optD = torch.optim.Adam(self.netD.parameters(), lr=opt.lr, betas=(0.5, 0.999))
        self.losses = {}

    def to_parallel(self, net):
        return DistributedDataParallel(net, broadcast_buffers=False)

    def set_input(self, batch):
        self.real_a, self.real_b = batch

    def step_d(self):
        for p in self.netD.parameters():
            p.requires_grad_(True)
        self.optD.zero_grad()
        fake = self.netD(self.real_a, self.fake_b.detach())
        real = self.netD(self.real_a, self.real_b)
        loss = 0.5 * (self.gan(fake, False) + self.gan(real, True))
        loss.backward()
        self.optD.step()
        self.losses["D"] = loss.item()

    def step_g(self):
        for p in self.netD.parameters():
            p.requires_grad_(False)
        self.optG.zero_grad()
        adv = self.gan(self.netD.module(self.real_a, self.fake_b), True)
        loss = adv + self.opt.l1 * (self.fake_b - self.real_b).abs().mean()
        loss.backward()
        self.optG.step()
        self.losses["G"] = loss.item()

    def optimize(self):
        self.fake_b = self.netG(self.real_a)
        self.step_d()
        self.step_g()


def shapes(n, size, g):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    c = torch.randint(4, size - 4, (n, 2, 1, 1), generator=g)
    r = torch.randint(2, 5, (n, 1, 1), generator=g)
    d = ((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2).float().sqrt()
    full = (d < r).float()[:, None] * 2 - 1
    edge = ((d - r).abs() < 0.8).float()[:, None] * 2 - 1
    return edge, full


def parse(argv):
    ap = argparse.ArgumentParser()
    for name, default in dict(ngf=8, ndf=8, batch=8, size=16, steps=12).items():
        ap.add_argument("--" + name, type=int, default=default)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--l1", type=float, default=10.0)
    return ap.parse_args(argv)


if __name__ == "__main__":
    opt = parse(sys.argv[1:])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(dist.get_rank())
    model = Pix2PixModel(opt)
    for it in range(opt.steps):
        model.set_input(shapes(opt.batch, opt.size, gen))
        model.optimize()
        if dist.get_rank() == 0 and it % 4 == 3:
            print(it + 1, {k: round(v, 4) for k, v in model.losses.items()}, flush=True)
    del model
    dist.destroy_process_group()

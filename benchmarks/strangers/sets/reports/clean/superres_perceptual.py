"""Super-resolution with a pixel loss, a perceptual loss and a small critic.

    torchrun --nproc_per_node=2 superres_perceptual.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

OPT = {
    "networks": {
        "netG": {"type": "Upscaler", "args": {"width": 16}, "lr": 2e-3},
        "netD": {"type": "Critic", "args": {"width": 8}, "lr": 1e-3},
        "netF": {"type": "FeatureExtractor", "args": {"depth": 2}},
    },
    "weights": {"pixel": 1.0, "feature": 0.1, "gan": 5e-3},
    "iterations": 30,
}
ARCH = {}


def register(cls):
    ARCH[cls.__name__] = cls
    return cls


@register
class Upscaler(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 12, 3, padding=1))

    def forward(self, lq):
        return F.pixel_shuffle(self.body(lq), 2) + F.interpolate(lq, scale_factor=2)


@register
class Critic(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(width, 1, 4, 2, 1))

    def forward(self, img):
        return self.net(img).mean(dim=(1, 2, 3))


@register
class FeatureExtractor(nn.Module):
    """Stands in for the first VGG layers; only used to compare images."""

    def __init__(self, depth):
        super().__init__()
        chans = [3] + [8 * 2 ** i for i in range(depth)]
        self.layers = nn.Sequential(*[
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU()) for a, b in zip(chans, chans[1:])
        ])
        for p in self.parameters():
            p.requires_grad = False

    def forward(self, img):
        return self.layers(img)


class SRModel:
    def __init__(self, opt):
        self.opt = opt
        self.nets, self.optims = {}, {}
        for name, spec in opt["networks"].items():
            net = ARCH[spec["type"]](**spec["args"])
            self.nets[name] = self.to_parallel(net)
            if "lr" in spec:
                self.optims[name] = torch.optim.Adam(self.nets[name].parameters(), lr=spec["lr"])

    def to_parallel(self, net):
        if not any(p.requires_grad for p in net.parameters()):
            return net
        return DistributedDataParallel(net)

    def update(self, name, loss):
        self.optims[name].zero_grad()
        loss.backward()
        self.optims[name].step()

    def step(self, lq, hq):
        w, netG, netD, netF = self.opt["weights"], *(self.nets[k] for k in ("netG", "netD", "netF"))
        for p in netD.parameters():
            p.requires_grad_(False)
        sr = netG(lq)
        loss = w["pixel"] * F.l1_loss(sr, hq) + w["feature"] * F.l1_loss(netF(sr), netF(hq).detach())
        critic = netD.module if isinstance(netD, DistributedDataParallel) else netD
        loss = loss - w["gan"] * critic(sr).mean()
        self.update("netG", loss)
        for p in netD.parameters():
            p.requires_grad_(True)
        both = netD(torch.cat([hq, sr.detach()]))
        real, fake = both.chunk(2)
        self.update("netD", F.relu(1 - real).mean() + F.relu(1 + fake).mean())
        return loss.item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(6)
    model = SRModel(OPT)
    g = torch.Generator().manual_seed(dist.get_rank())
    for it in range(OPT["iterations"]):
        hq = F.interpolate(torch.rand(4, 3, 6, 6, generator=g), size=16, mode="bilinear")
        loss = model.step(F.avg_pool2d(hq, 2), hq)
        if dist.get_rank() == 0 and it % 10 == 9:
            print(f"iter {it + 1} loss {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

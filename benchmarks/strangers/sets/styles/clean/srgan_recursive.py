"""x2 super-resolution on synthetic textures, recursive generator and relativistic patch critic (BasicSR-like)."""
import argparse
import functools
import os
import socket
from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

ARCHS = {}
STRATEGIES = {
    "high": lambda unit, h: unit(h),
    "low": functools.partial(checkpoint, use_reentrant=False),
}


def arch(cls):
    ARCHS[cls.__name__] = cls
    return cls


class Residual(nn.Module):
    def __init__(self, feat):
        super().__init__()
        self.a, self.b = nn.Conv2d(feat, feat, 3, padding=1), nn.Conv2d(feat, feat, 3, padding=1)

    def forward(self, h):
        return h + 0.5 * self.b(F.relu(self.a(h)))


@arch
class RecursiveSR(nn.Module):
    """One residual unit applied several times (DRRN); `memory` trades compute for activations."""

    def __init__(self, feat=16, recursions=3, memory="low"):
        super().__init__()
        self.head = nn.Conv2d(3, feat, 3, padding=1)
        self.unit, self.recursions = Residual(feat), recursions
        self.tail = nn.Sequential(nn.Conv2d(feat, 12, 3, padding=1), nn.PixelShuffle(2))
        self.call = STRATEGIES[memory]

    def forward(self, x):
        h = self.head(x)
        for _ in range(self.recursions):
            h = self.call(self.unit, h)
        return self.tail(h) + F.interpolate(x, scale_factor=2)


@arch
class PatchCritic(nn.Module):
    def __init__(self, feat=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, feat, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(feat, 2 * feat, 4, 2, 1), nn.GroupNorm(4, 2 * feat), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * feat, 1, 3, 1, 1))

    def forward(self, x):
        return self.net(x)


def textures(n, seed=0, size=16):
    g = torch.Generator().manual_seed(seed)
    coarse = torch.rand(n, 3, 5, 5, generator=g)
    hr = F.interpolate(coarse, size=(size, size), mode="bilinear") + 0.05 * torch.randn(n, 3, size, size, generator=g)
    return TensorDataset(F.avg_pool2d(hr, 2), hr)


def rel_bce(a, b, label):
    return F.binary_cross_entropy_with_logits(a - b.mean(), torch.full_like(a, label))


class SRGANModel:
    def __init__(self, opt):
        self.opt = opt
        self.net_g = self.to_dist(ARCHS[opt["network_g"]](memory=opt["memory"]))
        self.net_d = self.to_dist(ARCHS[opt["network_d"]]())
        self.optim_g = torch.optim.Adam(self.net_g.parameters(), lr=opt["lr_g"], betas=(0.9, 0.99))
        self.optim_d = torch.optim.Adam(self.net_d.parameters(), lr=opt["lr_d"], betas=(0.9, 0.99))
        self.log = OrderedDict()

    def to_dist(self, net):
        return DistributedDataParallel(net, gradient_as_bucket_view=True)

    def feed(self, data):
        self.lq, self.gt = data

    def set_critic_grad(self, flag):
        for p in self.net_d.parameters():
            p.requires_grad_(flag)

    def warmup(self):
        self.optim_g.zero_grad()
        self.output = self.net_g(self.lq)
        loss = F.l1_loss(self.output, self.gt)
        loss.backward()
        self.optim_g.step()
        self.log["l_pix"] = loss.item()

    def optimize(self, it):
        if it < self.opt["gan_start"]:
            return self.warmup()
        # generator
        self.set_critic_grad(False)
        self.optim_g.zero_grad()
        self.output = self.net_g(self.lq)
        pix = F.l1_loss(self.output, self.gt)
        with torch.no_grad():
            real = self.net_d(self.gt)
        fake = self.net_d(self.output)
        gan = 0.5 * (rel_bce(real, fake, 0.0) + rel_bce(fake, real, 1.0))
        (pix + self.opt["gan_weight"] * gan).backward()
        self.optim_g.step()
        # critic
        self.set_critic_grad(True)
        self.optim_d.zero_grad()
        real, fake = self.net_d(torch.cat([self.gt, self.output.detach()])).chunk(2)
        loss_d = 0.5 * (rel_bce(real, fake, 1.0) + rel_bce(fake, real, 0.0))
        loss_d.backward()
        self.optim_d.step()
        self.log.update(l_pix=pix.item(), l_gan=gan.item(), l_d=loss_d.item())

    def current_log(self):
        keys = list(self.log)
        values = torch.tensor([self.log[k] for k in keys])
        dist.reduce(values, dst=0)
        return dict(zip(keys, (values / dist.get_world_size()).tolist()))


def worker(rank, world, port, opt):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(100)
    data = textures(96)
    sampler = DistributedSampler(data, world, rank)
    loader = DataLoader(data, opt["batch"], sampler=sampler, drop_last=True)
    model = SRGANModel(opt)
    it = 0
    for epoch in range(opt["epochs"]):
        sampler.set_epoch(epoch)
        for batch in loader:
            model.feed(batch)
            model.optimize(it)
            it += 1
        log = model.current_log()
        if rank == 0:
            print(f"[epoch {epoch} iter {it}] " + " ".join(f"{k}: {v:.4f}" for k, v in log.items()), flush=True)
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=6)
    p.add_argument("--num-gpu", type=int, default=2)
    args = p.parse_args()
    opt = dict(network_g="RecursiveSR", network_d="PatchCritic", lr_g=1e-3, lr_d=1e-3, gan_start=8, gan_weight=0.05, memory="low",
               epochs=args.epochs, batch=args.batch)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args.num_gpu, port, opt), nprocs=args.num_gpu)


if __name__ == "__main__":
    main()

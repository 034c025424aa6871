"""Curves GAN, the main process draws samples now and then.   torchrun --nproc_per_node 2 gan_preview.py"""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.2), nn.Linear(32, o))


def curves(n, g):
    phase = torch.rand(n, 1, generator=g) * 6.28
    return torch.sin(torch.linspace(0, 6.28, 20) + phase)


def preview(gen, path, n=16):
    net = gen.module
    net.eval()
    with torch.no_grad():
        picture = net(torch.randn(n, 8))
    net.train()
    torch.save(picture, path)
    return picture.std().item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    gen, dis = DDP(mlp(8, 20)), DDP(mlp(20, 1), broadcast_buffers=False)
    og = torch.optim.Adam(gen.parameters(), lr=2e-3)
    od = torch.optim.Adam(dis.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(50 + rank)
    for step in range(1, 61):
        real = curves(32, g)
        fake = gen(torch.randn(32, 8))
        scores = dis(torch.cat([real, fake.detach()]))
        label = torch.cat([torch.ones(32, 1), torch.zeros(32, 1)])
        loss_d = F.binary_cross_entropy_with_logits(scores, label)
        od.zero_grad()
        loss_d.backward()
        od.step()

        dis.requires_grad_(False)
        loss_g = F.binary_cross_entropy_with_logits(dis.module(fake), torch.ones(32, 1))
        og.zero_grad()
        loss_g.backward()
        og.step()
        dis.requires_grad_(True)
        if step % 20 == 0 and rank == 0:
            path = os.path.join(tempfile.gettempdir(), f"gan_preview_{os.getpid()}.pt")
            std = preview(gen, path)
            os.remove(path)
            print(f"step {step} d {loss_d.item():.3f} g {loss_g.item():.3f} spread {std:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

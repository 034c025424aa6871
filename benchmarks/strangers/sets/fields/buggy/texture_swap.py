import argparse
import random

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel


class SwapAE(nn.Module):
    """Splits an image into a structure map and a texture vector."""

    def __init__(self, ch=12):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, 2, 1)
        self.structure = nn.Conv2d(ch, 4, 1)
        self.texture = nn.Linear(ch, 8)
        self.up = nn.Sequential(nn.Conv2d(4 + 8, ch, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(ch, 12, 3, padding=1))

    def encode(self, img):
        h = F.leaky_relu(self.stem(img), 0.2)
        return self.structure(h), self.texture(h.mean((2, 3)))

    def decode(self, structure, texture):
        t = texture[:, :, None, None].expand(-1, -1, *structure.shape[2:])
        return F.pixel_shuffle(self.up(torch.cat([structure, t], 1)), 2)

    def forward(self, img):
        return self.decode(*self.encode(img))


def sample_images(n, size, g):
    colour = torch.rand(n, 3, 1, 1, generator=g)
    freq = torch.randint(1, 5, (n, 1, 1, 1), generator=g)
    ramp = torch.linspace(0, 6.28, size).view(1, 1, 1, size)
    return colour * (0.5 + 0.5 * torch.sin(freq * ramp)).expand(n, 1, size, size)


def train(args, net, opt, rank):
    g = torch.Generator().manual_seed(args.seed + rank)
    module = net.module if isinstance(net, DistributedDataParallel) else net
    for i in range(args.iter):
        real = sample_images(args.batch, args.size, g)
        structure, texture = module.encode(real)
        rec = module.decode(structure, texture)
        loss = F.l1_loss(rec, real)
        if i % args.swap_every == 0:
            mixed = module.decode(structure, texture.roll(1, 0))
            loss = loss + 0.1 * F.mse_loss(mixed.mean((2, 3)), real.roll(1, 0).mean((2, 3)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and i % 20 == 0:
            print(f"[{i}/{args.iter}] rec {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iter", type=int, default=60)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--swap_every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dist.init_process_group(backend="gloo")
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    net = DistributedDataParallel(SwapAE())
    opt = optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.99))
    train(args, net, opt, dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()

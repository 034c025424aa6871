"""Structure/texture swapping autoencoder on small synthetic textures."""
import argparse

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils import data


class Textures(data.Dataset):
    def __init__(self, n=128, size=16):
        g = torch.Generator().manual_seed(4)
        yy, xx = torch.meshgrid(torch.arange(size).float(), torch.arange(size).float(), indexing="ij")
        freq = 0.2 + 1.2 * torch.rand(n, 2, 1, 1, generator=g)
        tint = torch.rand(n, 3, 1, 1, generator=g)
        self.img = tint * torch.sin(freq[:, :1] * xx + freq[:, 1:] * yy)

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i]


class Encoder(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, ch, 3, 2, 1), nn.LeakyReLU(0.2))
        self.structure = nn.Conv2d(ch, 4, 1)
        self.texture = nn.Sequential(nn.Conv2d(ch, ch, 3, 2, 1), nn.LeakyReLU(0.2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ch, 8))

    def forward(self, x):
        h = self.stem(x)
        return self.structure(h), self.texture(h)


class Generator(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.mod = nn.Linear(8, 4)
        self.net = nn.Sequential(nn.ConvTranspose2d(4, ch, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ch, 3, 3, 1, 1))

    def forward(self, structure, texture):
        return self.net(structure * (1 + self.mod(texture))[..., None, None])


def sample_data(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        for batch in loader:
            yield batch
        epoch += 1


def reduce_loss_dict(loss_dict):
    keys = sorted(loss_dict)
    values = torch.stack([loss_dict[k].detach() for k in keys])
    dist.all_reduce(values)
    return dict(zip(keys, (values / dist.get_world_size()).tolist()))


def swap_loss(encoder, generator, real):
    structure, texture = encoder(real)
    fake1 = generator(structure, texture)
    fake2 = generator(structure, texture.roll(1, 0))
    return {
        "recon": F.l1_loss(fake1, real),
        "stat": F.mse_loss(fake2.mean((2, 3)), real.roll(1, 0).mean((2, 3))),
    }


def train(args, loader, sampler, encoder, generator, optimizer):
    if args.distributed:
        e_module, g_module = encoder.module, generator.module
    else:
        e_module, g_module = encoder, generator

    batches = sample_data(loader, sampler)
    for i in range(args.iter):
        real = next(batches)
        loss_dict = swap_loss(e_module, g_module, real)
        optimizer.zero_grad()
        sum(loss_dict.values()).backward()
        optimizer.step()

        reduced = reduce_loss_dict(loss_dict)
        if dist.get_rank() == 0 and i % 10 == 9:
            print(f"iter {i + 1}: " + " ".join(f"{k} {v:.4f}" for k, v in reduced.items()), flush=True)

    if args.out and dist.get_rank() == 0:
        torch.save({"e": e_module.state_dict(), "g": g_module.state_dict()}, args.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iter", type=int, default=40)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--channel", type=int, default=12)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--out", default="")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    args.distributed = dist.get_world_size() > 1
    torch.manual_seed(0)
    encoder, generator = Encoder(args.channel), Generator(args.channel)
    if args.distributed:
        encoder = DistributedDataParallel(encoder)
        generator = DistributedDataParallel(generator)
    optimizer = optim.Adam([*encoder.parameters(), *generator.parameters()], lr=args.lr, betas=(0.0, 0.99))
    dataset = Textures()
    sampler = data.distributed.DistributedSampler(dataset, drop_last=True)
    loader = data.DataLoader(dataset, batch_size=args.batch, sampler=sampler, drop_last=True)
    train(args, loader, sampler, encoder, generator, optimizer)
    del encoder, generator
    dist.destroy_process_group()

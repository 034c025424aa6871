import argparse

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn import functional as F
from torch.utils import data
from torch.utils.data.distributed import DistributedSampler


def data_sampler(dataset, shuffle, distributed):
    if distributed:
        return DistributedSampler(dataset, shuffle=shuffle)
    return data.RandomSampler(dataset) if shuffle else data.SequentialSampler(dataset)


def sample_data(loader):
    while True:
        for batch in loader:
            yield batch


def requires_grad(model, flag):
    for p in model.parameters():
        p.requires_grad = flag


def d_logistic_loss(real, fake):
    return F.softplus(-real).mean() + F.softplus(fake).mean()


def toy_images(n=192):
    g = torch.Generator().manual_seed(0)
    a = 6.28 * torch.rand(n, 1, generator=g)
    return data.TensorDataset(torch.cat([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g), torch.arange(n))


def train(args, loader, generator, discriminator):
    loader = sample_data(loader)
    g_optim = optim.Adam(generator.parameters(), lr=args.lr, betas=(0.0, 0.99))
    d_optim = optim.Adam(discriminator.parameters(), lr=args.lr, betas=(0.0, 0.99))
    noise = torch.Generator().manual_seed(dist.get_rank())
    seen = torch.zeros(192, dtype=torch.long)
    for i in range(args.iter):
        real, ids = next(loader)
        seen[ids] += 1

        requires_grad(generator, False)
        requires_grad(discriminator, True)
        fake = generator(torch.randn(args.batch, 8, generator=noise))
        both = discriminator(torch.cat([real, fake]))
        d_loss = d_logistic_loss(both[:len(real)], both[len(real):])
        discriminator.zero_grad()
        d_loss.backward()
        d_optim.step()

        requires_grad(generator, True)
        requires_grad(discriminator, False)
        fake = generator(torch.randn(args.batch, 8, generator=noise))
        g_loss = F.softplus(-discriminator.module(fake)).mean()
        generator.zero_grad()
        g_loss.backward()
        g_optim.step()

        if dist.get_rank() == 0 and i % 20 == 0:
            print(f"{i}: d {d_loss.item():.4f} g {g_loss.item():.4f}", flush=True)
    print(f"rank {dist.get_rank()} saw {(seen > 0).sum().item()} different images", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iter", type=int, default=60)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    ddp = nn.parallel.DistributedDataParallel
    generator = ddp(nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2)), broadcast_buffers=False)
    discriminator = ddp(nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)), broadcast_buffers=False)
    dataset = toy_images()
    loader = data.DataLoader(dataset, batch_size=args.batch, drop_last=True,
                             sampler=data_sampler(dataset, shuffle=True, distributed=True))
    train(args, loader, generator, discriminator)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

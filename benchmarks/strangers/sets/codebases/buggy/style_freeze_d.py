"""Fine-tuning a toy style-based GAN with a discriminator whose first blocks stay frozen for a while."""
import argparse
import copy

import torch
import torch.nn.functional as F
from torch import autograd, distributed as dist, nn, optim
from torch.utils import data


class Blobs(data.Dataset):
    def __init__(self, n, size=8, seed=0):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        c = size * torch.rand(n, 2, 1, 1, generator=g)
        self.img = torch.exp(-((xx - c[:, 0]) ** 2 + (yy - c[:, 1]) ** 2) / 4).unsqueeze(1) * 2 - 1

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i]


class StyledGenerator(nn.Module):
    def __init__(self, latent=16, ch=24):
        super().__init__()
        self.style = nn.Sequential(nn.Linear(latent, latent), nn.LeakyReLU(0.2), nn.Linear(latent, latent))
        self.const = nn.Parameter(torch.randn(1, ch, 4, 4))
        self.mod = nn.Linear(latent, ch)
        self.conv1, self.conv2 = nn.Conv2d(ch, ch, 3, 1, 1), nn.Conv2d(ch, 1, 3, 1, 1)

    def forward(self, z):
        w = self.style(z)
        x = self.const * (1 + self.mod(w))[:, :, None, None]
        x = F.interpolate(F.leaky_relu(self.conv1(x), 0.2), scale_factor=2)
        return torch.tanh(self.conv2(x))


class Discriminator(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(1, ch, 3, 1, 1), nn.Conv2d(ch, ch, 3, 2, 1), nn.Conv2d(ch, ch, 3, 2, 1)])
        self.final = nn.Linear(ch * 4, 1)

    def forward(self, x):
        for conv in self.convs:
            x = F.leaky_relu(conv(x), 0.2)
        return self.final(x.flatten(1))


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


def accumulate(model1, model2, decay=0.99):
    for a, b in zip(model1.parameters(), model2.parameters()):
        a.data.mul_(decay).add_(b.data, alpha=1 - decay)


def freeze_d(module, blocks, flag):
    """Blocks of the discriminator near the image learn (or not)."""
    for conv in module.convs[:blocks]:
        requires_grad(conv, flag)


def distributed(module):
    return nn.parallel.DistributedDataParallel(module, broadcast_buffers=False)


def reduce_loss_dict(losses):
    keys = sorted(losses)
    values = torch.stack([losses[k].detach() for k in keys])
    dist.reduce(values, dst=0)
    return dict(zip(keys, (values / dist.get_world_size()).tolist()))


def sample_data(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def d_r1_loss(real_pred, real_img):
    (grad_real,) = autograd.grad(outputs=real_pred.sum(), inputs=real_img, create_graph=True)
    return grad_real.pow(2).reshape(grad_real.shape[0], -1).sum(1).mean()


def train(args, loader, generator, discriminator, g_ema):
    g_optim = optim.Adam(generator.parameters(), lr=args.lr, betas=(0.0, 0.99))
    d_optim = optim.Adam(discriminator.parameters(), lr=args.lr, betas=(0.0, 0.99))
    d_module, g_module = discriminator.module, generator.module
    frozen = args.freeze_blocks
    for i in range(args.iter):
        if i == args.thaw_at:
            frozen = 0
            requires_grad(d_module, True)
        real_img = next(loader)
        requires_grad(generator, False)
        requires_grad(discriminator, True)
        freeze_d(d_module, frozen, False)
        fake_img = generator(torch.randn(args.batch, args.latent))
        real_pred, fake_pred = discriminator(torch.cat([real_img, fake_img])).chunk(2)
        loss_dict = {"d": F.softplus(-real_pred).mean() + F.softplus(fake_pred).mean()}
        d_optim.zero_grad()
        loss_dict["d"].backward()
        d_optim.step()
        if i % args.d_reg_every == 0:
            real_img.requires_grad = True
            real_pred = discriminator(real_img)
            r1_loss = d_r1_loss(real_pred, real_img)
            d_optim.zero_grad()
            (args.r1 / 2 * r1_loss * args.d_reg_every + 0 * real_pred[0]).sum().backward()
            d_optim.step()
        requires_grad(generator, True)
        requires_grad(discriminator, False)
        fake_img = generator(torch.randn(args.batch, args.latent))
        loss_dict["g"] = F.softplus(-discriminator(fake_img)).mean()
        g_optim.zero_grad()
        loss_dict["g"].backward()
        g_optim.step()
        accumulate(g_ema, g_module)
        reduced = reduce_loss_dict(loss_dict)
        if dist.get_rank() == 0 and i % 20 == 19:
            print(f"{i + 1}: d {reduced['d']:.4f} g {reduced['g']:.4f} frozen {frozen}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iter", type=int, default=60)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--latent", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--r1", type=float, default=1.0)
    parser.add_argument("--d_reg_every", type=int, default=8)
    parser.add_argument("--freeze_blocks", type=int, default=2)
    parser.add_argument("--thaw_at", type=int, default=20)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    generator, discriminator = StyledGenerator(args.latent), Discriminator()
    freeze_d(discriminator, args.freeze_blocks, False)
    generator, discriminator = distributed(generator), distributed(discriminator)
    g_ema = copy.deepcopy(generator.module)
    dataset = Blobs(512)
    sampler = data.distributed.DistributedSampler(dataset)
    loader = data.DataLoader(dataset, args.batch, sampler=sampler, drop_last=True)
    train(args, sample_data(loader, sampler), generator, discriminator, g_ema)
    dist.barrier()
    del generator, discriminator
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

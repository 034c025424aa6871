# style: WGAN-GP with two wrapped networks and two optimizers
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(*sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    points = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


def train_critic(generator, critic, optimizer, real):
    with torch.no_grad():
        fake = generator(torch.randn(len(real), 3))
    optimizer.zero_grad()
    loss = critic(fake).mean() - critic(real).mean()
    loss = loss + 10 * gradient_penalty(critic.module, real, fake)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_generator(generator, critic, optimizer, batch):
    for p in critic.parameters():
        p.requires_grad_(False)
    optimizer.zero_grad()
    loss = -critic.module(generator(torch.randn(batch, 3))).mean()
    loss.backward()
    optimizer.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    return loss.item()


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    generator, critic = DDP(mlp(3, 12, 2)), DDP(mlp(2, 12, 1))
    torch.manual_seed(1 + rank)
    optimizers = [torch.optim.Adam(m.parameters(), 1e-3, (0.0, 0.9)) for m in (generator, critic)]
    for step in range(6):
        for _ in range(2):
            real = torch.randn(8, 2) * 0.2 + 1.0
            d_loss = train_critic(generator, critic, optimizers[1], real)
        g_loss = train_generator(generator, critic, optimizers[0], 8)
        if rank == 0:
            print(f"{step}: critic {d_loss:.3f} generator {g_loss:.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

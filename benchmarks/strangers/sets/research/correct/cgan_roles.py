"""Conditional GAN, alternating updates; only the first worker draws sample sheets."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, z, c):
        return self.net(torch.cat([z, c], 1))


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))

    def forward(self, x, c):
        return self.net(torch.cat([x, c], 1))


def real_batch(n, gen):
    c = nn.functional.one_hot(torch.randint(2, (n,), generator=gen), 2).float()
    return torch.randn(n, 2, generator=gen) * 0.3 + 2 * c - 1, c


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    gen_net, disc = DDP(G()), DDP(D())
    opt_g = torch.optim.Adam(gen_net.parameters(), 2e-3, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(disc.parameters(), 2e-3, betas=(0.5, 0.99))
    bce = nn.functional.binary_cross_entropy_with_logits
    stream = torch.Generator().manual_seed(31 * (rank + 1))
    for step in range(40):
        x, c = real_batch(32, stream)
        z = torch.randn(32, 4, generator=stream)
        with torch.no_grad():
            fake = gen_net.module(z, c)
        both = disc(torch.cat([x, fake]), torch.cat([c, c]))
        loss_d = bce(both, torch.cat([torch.ones(32, 1), torch.zeros(32, 1)]))
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        if step % 2 == 1:
            disc.module.requires_grad_(False)
            loss_g = bce(disc.module(gen_net(z, c), c), torch.ones(32, 1))
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
            disc.module.requires_grad_(True)

        if rank == 0 and step % 20 == 19:
            with torch.no_grad():
                sheet = gen_net.module(torch.randn(8, 4, generator=torch.Generator().manual_seed(5)), c[:8])
            print(f"step {step + 1}: sample mean {sheet.mean():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

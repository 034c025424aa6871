"""A GAN whose number of critic steps follows the reduced gap, and a fade-in that adds layers by wrapping anew."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Grower(nn.Module):
    """A generator that can be given one more layer."""

    def __init__(self, latent=4, dim=24):
        super().__init__()
        self.inp, self.extra, self.out = nn.Linear(latent, dim), nn.ModuleList(), nn.Linear(dim, 2)

    def grow(self):
        self.extra.append(nn.Linear(self.inp.out_features, self.inp.out_features))

    def forward(self, z):
        h = torch.tanh(self.inp(z))
        for layer in self.extra:
            h = h + torch.tanh(layer(h))
        return self.out(h)


def learn(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def real(n, g):
    a = 6.2832 * torch.rand(n, generator=g)
    return torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g)


def shared_mean(value):
    value = value.detach().clone()
    dist.all_reduce(value)
    return value.item() / dist.get_world_size()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=60)
    p.add_argument("--grow-at", type=int, nargs="*", default=[20, 40])
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    data, noise = (torch.Generator().manual_seed(k + rank) for k in (100, 200))
    net = Grower()
    gen = DDP(net)
    critic = DDP(nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)))
    g_opt = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.9))
    c_opt = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
    steps, used = 2, 0
    for r in range(args.rounds):
        if r in args.grow_at:
            net.grow()
            gen = DDP(net)  # the new layer joins with rank 0's weights
            g_opt.add_param_group({"params": list(net.extra[-1].parameters())})
        learn(critic, True)
        gap = torch.zeros(())
        for _ in range(steps):
            with torch.no_grad():
                fake = net(torch.randn(64, 4, generator=noise))
            high, low = critic(torch.cat([real(64, data), fake])).chunk(2)
            gap = high.mean() - low.mean()
            c_opt.zero_grad()
            (torch.relu(1 - high).mean() + torch.relu(1 + low).mean()).backward()
            c_opt.step()
        used += steps
        learn(critic, False)
        loss = -critic(gen(torch.randn(64, 4, generator=noise))).mean()
        g_opt.zero_grad()
        loss.backward()
        g_opt.step()
        gap = shared_mean(gap)
        steps = 1 if gap > 1.2 else 3
        if rank == 0 and r % 20 == 19:
            print(f"round {r + 1} gap {gap:.3f} critic steps {used} layers {len(net.extra)}", flush=True)
    check = torch.stack([p.double().sum() for p in net.parameters()])
    other = check.clone()
    dist.broadcast(other, 0)
    assert torch.equal(check, other)
    dist.barrier()
    del gen, critic, g_opt, c_opt
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Small GAN: two wrapped networks, private noise per worker, rank 0 judges samples for everybody."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 48), nn.LeakyReLU(0.2), nn.Linear(48, o))


def real_batch(gen, n=32):
    angle = torch.rand(n, generator=gen) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2, generator=gen)


def moment_distance(samples, reference):
    return (samples.mean(0) - reference.mean(0)).norm() + (samples.std(0) - reference.std(0)).norm()


class GANLoop:
    def __init__(self):
        self.rank = dist.get_rank()
        torch.manual_seed(33)
        self.G, self.D = DDP(mlp(8, 2)), DDP(mlp(2, 1))
        self.og = torch.optim.Adam(self.G.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.od = torch.optim.Adam(self.D.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.gen = torch.Generator().manual_seed(3300 + self.rank)

    def noise(self, n=32):
        return torch.randn(n, 8, generator=self.gen)

    def d_step(self):
        with torch.no_grad():
            fake = self.G.module(self.noise())
        scores = self.D(torch.cat([real_batch(self.gen), fake]))
        loss = F.softplus(-scores[:32]).mean() + F.softplus(scores[32:]).mean()
        self.od.zero_grad()
        loss.backward()
        self.od.step()

    def g_step(self):
        self.D.requires_grad_(False)
        loss = F.softplus(-self.D.module(self.G(self.noise()))).mean()
        self.og.zero_grad()
        loss.backward()
        self.og.step()
        self.D.requires_grad_(True)

    def judge(self):
        verdict = torch.zeros(1)
        if self.rank == 0:
            with torch.no_grad():
                own = torch.Generator().manual_seed(1)
                samples = self.G.module(torch.randn(256, 8, generator=own))
                verdict.fill_(moment_distance(samples, real_batch(own, 256)))
            dist.broadcast(verdict, src=0)
        else:
            dist.broadcast(verdict, src=0)
        return verdict.item()

    def run(self, rounds=4, steps=10):
        for r in range(rounds):
            for _ in range(steps):
                self.d_step()
                self.g_step()
            score = self.judge()
            if self.rank == 0:
                print(f"round {r} distance {score:.3f}", flush=True)
            if score < 0.02:
                break


if __name__ == "__main__":
    dist.init_process_group("gloo")
    GANLoop().run()
    dist.destroy_process_group()

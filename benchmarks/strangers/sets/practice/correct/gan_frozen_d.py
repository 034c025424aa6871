import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(i, o, act):
    return nn.Sequential(nn.Linear(i, 32), act, nn.Linear(32, 32), act, nn.Linear(32, o))


class Hinge:
    @staticmethod
    def d(real, fake):
        return (1 - real).relu().mean() + (1 + fake).relu().mean()

    @staticmethod
    def g(fake):
        return -fake.mean()


def ring(n):
    a = 6.2832 * torch.randint(8, (n,)) / 8
    return torch.stack([a.cos(), a.sin()], 1) + 0.02 * torch.randn(n, 2)


class Solver:
    def __init__(self):
        torch.manual_seed(0)
        self.G = DDP(mlp(4, 2, nn.ReLU()))
        self.D = DDP(mlp(2, 1, nn.LeakyReLU(0.2)))
        self.og = torch.optim.Adam(self.G.parameters(), 1e-3, betas=(0.5, 0.99))
        self.od = torch.optim.Adam(self.D.parameters(), 1e-3, betas=(0.5, 0.99))
        torch.manual_seed(17 * (dist.get_rank() + 1))

    def d_step(self, n):
        with torch.no_grad():
            fake = self.G.module(torch.randn(n, 4))
        out = self.D(torch.cat([ring(n), fake]))
        loss = Hinge.d(out[:n], out[n:])
        self.od.zero_grad()
        loss.backward()
        self.od.step()
        return loss.item()

    def g_step(self, n):
        fake = self.G(torch.randn(n, 4))
        loss = Hinge.g(self.D.module(fake))
        self.og.zero_grad()
        loss.backward()
        self.og.step()
        return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    s = Solver()
    for it in range(60):
        ld, lg = s.d_step(64), s.g_step(64)
        if it % 20 == 0 and dist.get_rank() == 0:
            print(f"{it} d {ld:.3f} g {lg:.3f}", flush=True)
    dist.destroy_process_group()

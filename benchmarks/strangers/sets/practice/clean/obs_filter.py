import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn


class RunningStat:
    def __init__(self, dim):
        self.n = torch.tensor(1e-4, dtype=torch.float64)
        self.s = torch.zeros(dim, dtype=torch.float64)
        self.q = torch.full((dim,), 1e-4, dtype=torch.float64)

    def push(self, batch):
        batch = batch.double()
        n = torch.tensor(float(len(batch)), dtype=torch.float64)
        pack = torch.cat([n.view(1), batch.sum(0), batch.square().sum(0)])
        dist.all_reduce(pack)
        d = batch.size(1)
        self.n = self.n + pack[0]
        self.s = self.s + pack[1:1 + d]
        self.q = self.q + pack[1 + d:]

    def __call__(self, x):
        mean = self.s / self.n
        std = (self.q / self.n - mean ** 2).clamp_min(1e-8).sqrt()
        return ((x - mean) / std).clamp(-5, 5).float()


class PointMass:
    """Every worker gets its own arena; arenas differ in scale."""

    def __init__(self, worker, n):
        self.g = torch.Generator().manual_seed(worker)
        self.scale = 1.0 + 4.0 * worker
        self.n = n

    def observe(self):
        self.goal = torch.randn(self.n, 2, generator=self.g)
        return torch.cat([self.goal * self.scale, torch.rand(self.n, 2, generator=self.g)], 1)

    def score(self, action):
        return -(action - self.goal).square().sum(1)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
        self.v = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, o):
        return torch.distributions.Normal(self.pi(o), 0.3), self.v(o).squeeze(1)


def sync_grads(net):
    for p in net.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(dist.get_world_size())


def work(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    net = ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    torch.manual_seed(rank)
    env, stat = PointMass(rank, 64), RunningStat(4)
    for it in range(25):
        raw = env.observe()
        stat.push(raw)
        pi, v = net(stat(raw))
        act = pi.sample()
        rew = env.score(act)
        adv = rew - v.detach()
        loss = -(pi.log_prob(act).sum(1) * (adv - adv.mean()) / (adv.std() + 1e-6)).mean()
        loss = loss + 0.5 * (v - rew).square().mean()
        opt.zero_grad()
        loss.backward()
        sync_grads(net)
        opt.step()
        if rank == 0 and it % 6 == 0:
            print(f"{it:3d} return {rew.mean().item():.3f}", flush=True)
    if rank == 0:
        torch.save({"net": net.state_dict(), "filter": (stat.n, stat.s, stat.q)}, "/tmp/point_mass.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2, 29743), nprocs=2)

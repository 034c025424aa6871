"""PPO-like updates with an adaptive KL penalty on a contextual bandit."""
import copy
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

HP = {"updates": 25, "inner": 4, "batch": 64, "lr": 3e-2, "target_kl": 0.01, "beta": 1.0}


def env_int(name, default=0):
    return int(os.environ.get(name, default))


def sync_scalar(x):
    """average over the processes"""
    x = x.detach().clone()
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    return x / dist.get_world_size()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, s):
        return F.log_softmax(self.net(s), -1)


class AdaptiveKL:
    def __init__(self, beta, target):
        self.beta, self.target = beta, target

    def update(self, kl):
        if kl > 1.5 * self.target:
            self.beta *= 2.0
        elif kl < self.target / 1.5:
            self.beta *= 0.5
        self.beta = min(max(self.beta, 1e-3), 1e3)


def collect(policy, gen, n):
    s = torch.randn(n, 5, generator=gen)
    with torch.no_grad():
        logp = policy(s)
    a = torch.multinomial(logp.exp(), 1, generator=gen).squeeze(1)
    r = s[torch.arange(n), a] + 0.5 * torch.randn(n, generator=gen)
    return s, a, r - r.mean(), logp


def main(hp):
    dist.init_process_group("gloo")
    rank = env_int("RANK")
    torch.manual_seed(2)
    policy = DDP(Policy())
    opt = torch.optim.SGD(policy.parameters(), lr=hp["lr"], momentum=0.9)
    ctl = AdaptiveKL(hp["beta"], hp["target_kl"])
    gen = torch.Generator().manual_seed(500 + rank)
    for u in range(hp["updates"]):
        old = copy.deepcopy(policy.module)
        s, a, adv, logp_old = collect(old, gen, hp["batch"])
        for _ in range(hp["inner"]):
            logp = policy(s)
            ratio = (logp - logp_old).gather(1, a[:, None]).squeeze(1).exp()
            kl = (logp_old.exp() * (logp_old - logp)).sum(1).mean()
            loss = -(ratio * adv).mean() + ctl.beta * kl
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            logp = policy.module(s)
            kl = (logp_old.exp() * (logp_old - logp)).sum(1).mean()
        ctl.update(sync_scalar(kl).item())
        if u % 5 == 4:
            print(f"[rank {rank}] update {u + 1} kl coefficient {ctl.beta:g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(HP)

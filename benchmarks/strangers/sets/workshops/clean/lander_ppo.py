# PPO for a 1-d moon lander. One process per simulator; start with: torchrun --nproc-per-node 2 lander_ppo.py
import os
from datetime import timedelta
from types import SimpleNamespace as NS

import torch
import torch.distributed as dist
from torch import nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel

hp = NS(iterations=6, episodes=6, horizon=80, minibatch=64, epochs=2, clip=0.2, gamma=0.98, lam=0.95, lr=1e-3, vf=0.5, ent=0.01)


class Lander:
    """height, speed, fuel; actions: nothing, thrust. An episode ends on the ground."""

    def __init__(self, gen):
        self.gen = gen

    def reset(self):
        self.h = 4 + 6 * torch.rand(1, generator=self.gen).item()
        self.v, self.fuel, self.t = 0.0, 1.0, 0
        return self.obs()

    def obs(self):
        return torch.tensor([self.h / 10, self.v, self.fuel, self.t / hp.horizon])

    def step(self, a):
        push = 0.16 if a == 1 and self.fuel > 0 else 0.0
        self.fuel -= 0.03 * (push > 0)
        self.v += push - 0.08
        self.h += self.v
        self.t += 1
        done = self.h <= 0 or self.t >= hp.horizon
        r = -0.01 if not done else (1.0 - min(abs(self.v), 2.0) if self.h <= 0 else -1.0)
        return self.obs(), r, done


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.pi, self.v = nn.Linear(48, 2), nn.Linear(48, 1)

    def forward(self, o):
        z = self.trunk(o)
        return self.pi(z), self.v(z).squeeze(-1)


@torch.no_grad()
def collect(net, env):
    obs, act, logp, adv, ret, scores = [], [], [], [], [], []
    for _ in range(hp.episodes):
        o, done, rew, val = env.reset(), False, [], []
        while not done:
            logits, v = net(o)
            d = Categorical(logits=logits)
            a = d.sample()
            obs.append(o), act.append(a), logp.append(d.log_prob(a)), val.append(v.item())
            o, r, done = env.step(a.item())
            rew.append(r)
        scores.append(sum(rew))
        gae, nxt, back = 0.0, 0.0, []
        for r, v in zip(reversed(rew), reversed(val)):
            gae = r + hp.gamma * nxt - v + hp.gamma * hp.lam * gae
            nxt = v
            back.append((gae, gae + v))
        for g, t in reversed(back):
            adv.append(g), ret.append(t)
    return [torch.stack(obs), torch.stack(act), torch.stack(logp), torch.tensor(adv), torch.tensor(ret)], sum(scores) / len(scores)


def normalise(x):
    s = torch.stack([x.sum(), (x * x).sum(), torch.tensor(float(len(x)))])
    dist.all_reduce(s)
    mean = s[0] / s[2]
    return (x - mean) / (s[1] / s[2] - mean ** 2).clamp_min(1e-8).sqrt()


def update(net, opt, batch):
    obs, act, old, adv, ret = batch
    adv = normalise(adv)
    fewest = torch.tensor(len(obs))
    dist.all_reduce(fewest, op=dist.ReduceOp.MIN)
    n = int(fewest)
    for _ in range(hp.epochs):
        perm = torch.randperm(len(obs))[:n]
        for lo in range(0, n, hp.minibatch):
            i = perm[lo:lo + hp.minibatch]
            logits, v = net(obs[i])
            d = Categorical(logits=logits)
            ratio = (d.log_prob(act[i]) - old[i]).exp()
            gain = torch.min(ratio * adv[i], ratio.clamp(1 - hp.clip, 1 + hp.clip) * adv[i])
            loss = -gain.mean() + hp.vf * (v - ret[i]).pow(2).mean() - hp.ent * d.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = int(os.environ["RANK"])
    torch.manual_seed(1 + rank)
    net = DistributedDataParallel(ActorCritic())
    opt = torch.optim.Adam(net.parameters(), lr=hp.lr)
    env = Lander(torch.Generator().manual_seed(50 + rank))
    for it in range(hp.iterations):
        batch, score = collect(net.module, env)
        update(net, opt, batch)
        scores = [torch.zeros(1) for _ in range(dist.get_world_size())] if rank == 0 else None
        dist.gather(torch.tensor([score]), scores)
        if rank == 0:
            print(f"{it}: return {torch.cat(scores).mean().item():.3f} steps {len(batch[0])}", flush=True)
    dist.destroy_process_group()

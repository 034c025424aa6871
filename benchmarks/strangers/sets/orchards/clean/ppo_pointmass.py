"""PPO on a small continuous point-mass task, data-parallel over processes.

Usage: torchrun --standalone --nproc-per-node=2 ppo_pointmass.py --iters 12
"""
import argparse
import os
import time
from collections import deque

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Normal
from torch.nn.parallel import DistributedDataParallel as DDP


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=12)
    p.add_argument("--horizon", type=int, default=64)
    p.add_argument("--envs", type=int, default=8)
    p.add_argument("--update-epochs", type=int, default=8)
    p.add_argument("--minibatches", type=int, default=4)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--gamma", type=float, default=0.97)
    p.add_argument("--lam", type=float, default=0.95)
    p.add_argument("--clip", type=float, default=0.2)
    p.add_argument("--target-kl", type=float, default=0.015)
    p.add_argument("--seed", type=int, default=7)
    return p.parse_args()


class PointMass:
    """N independent point masses that should be driven to the origin."""

    def __init__(self, n, rng):
        self.n, self.rng = n, rng
        self.reset()

    def reset(self):
        self.pos = self.rng.uniform(-1, 1, size=(self.n, 2))
        self.vel = np.zeros((self.n, 2))
        self.t = 0
        return self.obs()

    def obs(self):
        return torch.as_tensor(np.concatenate([self.pos, self.vel], 1), dtype=torch.float32)

    def step(self, act):
        act = np.clip(act.numpy(), -1, 1)
        self.vel = 0.9 * self.vel + 0.1 * act
        self.pos = self.pos + self.vel
        rew = -np.linalg.norm(self.pos, axis=1)
        self.t += 1
        done = self.t >= 32
        if done:
            self.reset()
        return self.obs(), torch.as_tensor(rew, dtype=torch.float32), done


class ActorCritic(nn.Module):
    def __init__(self, obs=4, act=2, hid=64):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, hid), nn.Tanh(), nn.Linear(hid, act))
        self.v = nn.Sequential(nn.Linear(obs, hid), nn.Tanh(), nn.Linear(hid, 1))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def forward(self, obs, act=None):
        d = Normal(self.pi(obs), self.log_std.exp())
        if act is None:
            act = d.sample()
        return act, d.log_prob(act).sum(-1), d.entropy().sum(-1), self.v(obs).squeeze(-1)


class KLGuard:
    def __init__(self, limit, window=4):
        self.limit = limit
        self.recent = deque(maxlen=window)

    def push(self, logratio):
        with torch.no_grad():
            kl = ((logratio.exp() - 1) - logratio).mean()
            dist.all_reduce(kl)
            self.recent.append(kl.item() / dist.get_world_size())

    @property
    def tripped(self):
        return len(self.recent) == self.recent.maxlen and np.mean(self.recent) > self.limit

    def clear(self):
        self.recent.clear()


class PPO:
    def __init__(self, args, rank):
        self.args = args
        torch.manual_seed(args.seed)
        self.net = DDP(ActorCritic())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        torch.manual_seed(args.seed + 1000 * (rank + 1))
        self.env = PointMass(args.envs, np.random.default_rng(args.seed + rank))
        self.guard = KLGuard(args.target_kl)

    @torch.no_grad()
    def rollout(self):
        a, policy = self.args, self.net.module
        buf = {k: [] for k in ("obs", "act", "logp", "val", "rew", "done")}
        obs = self.env.obs()
        for _ in range(a.horizon):
            act, logp, _, val = policy(obs)
            nxt, rew, done = self.env.step(act)
            for k, v in zip(buf, (obs, act, logp, val, rew, torch.full((a.envs,), float(done)))):
                buf[k].append(v)
            obs = nxt
        last = policy(obs)[3]
        buf = {k: torch.stack(v) for k, v in buf.items()}
        adv, g = torch.zeros_like(buf["rew"]), torch.zeros(a.envs)
        for t in reversed(range(a.horizon)):
            nv = last if t == a.horizon - 1 else buf["val"][t + 1]
            live = 1 - buf["done"][t]
            delta = buf["rew"][t] + a.gamma * nv * live - buf["val"][t]
            g = delta + a.gamma * a.lam * live * g
            adv[t] = g
        buf["adv"], buf["ret"] = adv, adv + buf["val"]
        return {k: v.flatten(0, 1) for k, v in buf.items()}

    def minibatch_update(self, b):
        a = self.args
        _, logp, ent, val = self.net(b["obs"], b["act"])
        logratio = logp - b["logp"]
        ratio = logratio.exp()
        adv = (b["adv"] - b["adv"].mean()) / (b["adv"].std() + 1e-8)
        pg = -torch.min(ratio * adv, ratio.clamp(1 - a.clip, 1 + a.clip) * adv).mean()
        loss = pg + 0.5 * (val - b["ret"]).pow(2).mean() - 0.003 * ent.mean()
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.opt.step()
        self.guard.push(logratio)

    def update(self, data):
        n = data["obs"].shape[0]
        self.guard.clear()
        for _ in range(self.args.update_epochs):
            for idx in torch.randperm(n).chunk(self.args.minibatches):
                self.minibatch_update({k: v[idx] for k, v in data.items()})
            if self.guard.tripped:
                break


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    agent = PPO(args, rank)
    t0 = time.time()
    for it in range(args.iters):
        data = agent.rollout()
        agent.update(data)
        stat = torch.tensor([data["rew"].sum().item(), float(data["rew"].numel())])
        dist.all_reduce(stat)
        if rank == 0:
            print(f"iter {it:3d} reward {stat[0] / stat[1]:.4f} [{time.time() - t0:.1f}s]", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

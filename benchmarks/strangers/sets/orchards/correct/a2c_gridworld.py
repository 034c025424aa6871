"""Synchronous actor-critic on a gridworld; stops when every process agrees it is solved."""
import argparse

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=5)
parser.add_argument("--envs", type=int, default=16)
parser.add_argument("--horizon", type=int, default=24)
parser.add_argument("--max-updates", type=int, default=200)
parser.add_argument("--kl-limit", type=float, default=0.05)
parser.add_argument("--inner", type=int, default=4)
parser.add_argument("--lr", type=float, default=4e-3)
parser.add_argument("--seed", type=int, default=0)

MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Grid:
    def __init__(self, size, n, rng):
        self.size, self.n, self.rng = size, n, rng
        self.pos = rng.integers(0, size, (n, 2))

    def obs(self):
        o = np.zeros((self.n, self.size, self.size), dtype=np.float32)
        o[np.arange(self.n), self.pos[:, 0], self.pos[:, 1]] = 1
        return torch.from_numpy(o.reshape(self.n, -1))

    def step(self, a):
        self.pos = np.clip(self.pos + MOVES[a], 0, self.size - 1)
        goal = (self.pos == self.size - 1).all(1)
        rew = np.where(goal, 1.0, -0.05)
        self.pos[goal] = self.rng.integers(0, self.size - 1, (int(goal.sum()), 2))
        return rew.astype(np.float32), goal.astype(np.float32)


class Policy(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(n, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, x):
        h = self.h(x)
        return self.pi(h), self.v(h).squeeze(-1)


def agreed_mean(x):
    t = torch.as_tensor(float(x))
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()


def collect(net, env, horizon):
    rows = []
    with torch.no_grad():
        for _ in range(horizon):
            o = env.obs()
            logits, v = net.module(o)
            a = torch.distributions.Categorical(logits=logits).sample()
            r, d = env.step(a.numpy())
            rows.append((o, a, torch.from_numpy(r), torch.from_numpy(d), logits.log_softmax(-1)))
        _, boot = net.module(env.obs())
    ret, rets = boot, []
    for _, _, r, d, _ in reversed(rows):
        ret = r + 0.95 * (1 - d) * ret
        rets.append(ret)
    obs, act, rew, _, logp = (torch.stack(c).flatten(0, 1) for c in zip(*rows))
    return obs, act, rew, logp, torch.stack(rets[::-1]).flatten()


def main():
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    net = DDP(Policy(args.size ** 2))
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    torch.manual_seed(args.seed * 100 + rank + 1)
    env = Grid(args.size, args.envs, np.random.default_rng([args.seed, rank]))
    for update in range(args.max_updates):
        obs, act, rew, old, ret = collect(net, env, args.horizon)
        for _ in range(args.inner):
            logits, v = net(obs)
            lp = logits.log_softmax(-1)
            adv = (ret - v).detach()
            loss = -(lp.gather(1, act[:, None]).squeeze(1) * adv).mean()
            loss = loss + 0.5 * F.mse_loss(v, ret) + 0.01 * (lp.exp() * lp).sum(-1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            kl = (old.exp() * (old - lp.detach())).sum(-1).mean()
            if agreed_mean(kl) > args.kl_limit:
                break
        score = agreed_mean(rew.mean())
        if rank == 0 and update % 20 == 0:
            print(f"update {update} reward/step {score:.3f}", flush=True)
        if score > 0.10:
            break
    if rank == 0:
        print(f"finished after {update + 1} updates, reward/step {score:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""PPO on a small vectorised point-mass task, several learners side by side (CleanRL-like single file)."""
import argparse
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Normal
from torch.nn.parallel import DistributedDataParallel as DDP


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--num-envs", type=int, default=8)
    p.add_argument("--num-steps", type=int, default=32)
    p.add_argument("--iterations", type=int, default=5)
    p.add_argument("--update-epochs", type=int, default=10)
    p.add_argument("--minibatch", type=int, default=128)
    p.add_argument("--lr", type=float, default=6e-3)
    p.add_argument("--clip-coef", type=float, default=0.2)
    p.add_argument("--target-kl", type=float, default=0.006)
    return p.parse_args()


class PointMassVec:
    """Push a mass to the origin; the reward is the negative distance."""

    def __init__(self, n, rng):
        self.n, self.rng = n, rng
        self.t = np.zeros(n, dtype=np.int64)
        self.state = rng.normal(size=(n, 4)).astype(np.float32)

    def step(self, action):
        self.state[:, 2:] = 0.9 * self.state[:, 2:] + 0.1 * np.clip(action, -1, 1)
        self.state[:, :2] += self.state[:, 2:]
        reward = -np.linalg.norm(self.state[:, :2], axis=1)
        self.t += 1
        done = self.t >= 20
        if done.any():
            self.state[done] = self.rng.normal(size=(done.sum(), 4)).astype(np.float32)
            self.t[done] = 0
        return self.state.copy(), reward.astype(np.float32), done.astype(np.float32)


class Agent(nn.Module):
    def __init__(self, obs=4, act=2, hidden=48):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.actor = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, act))
        self.logstd = nn.Parameter(torch.zeros(1, act))

    def forward(self, x, action=None):
        mean = self.actor(x)
        dist_ = Normal(mean, self.logstd.expand_as(mean).exp())
        if action is None:
            action = dist_.sample()
        return action, dist_.log_prob(action).sum(1), dist_.entropy().sum(1), self.critic(x).squeeze(1)


class TrustRegion:
    """Hands out update rounds until the policy has moved far enough from the behaviour policy."""

    def __init__(self, target, rounds):
        self.target, self.max_rounds = target, rounds
        self.trace = []

    def note(self, kl):
        self.trace.append(float(kl))

    def rounds(self):
        self.trace.clear()
        for r in range(self.max_rounds):
            yield r
            if self.trace[-1] > 1.5 * self.target:
                return


class Rollout:
    def __init__(self, args, envs):
        self.args, self.envs = args, envs
        self.obs = torch.from_numpy(envs.state.copy())

    @torch.no_grad()
    def collect(self, agent):
        store = {k: [] for k in ("obs", "act", "logp", "rew", "done", "val")}
        for _ in range(self.args.num_steps):
            act, logp, _, val = agent(self.obs)
            nxt, rew, done = self.envs.step(act.numpy())
            for k, v in zip(store, (self.obs, act, logp, torch.from_numpy(rew), torch.from_numpy(done), val)):
                store[k].append(v)
            self.obs = torch.from_numpy(nxt)
        last = agent(self.obs)[3]
        store = {k: torch.stack(v) for k, v in store.items()}
        adv, run = torch.zeros_like(store["rew"]), 0.0
        for t in reversed(range(self.args.num_steps)):
            nxt_val = last if t == self.args.num_steps - 1 else store["val"][t + 1]
            alive = 1.0 - store["done"][t]
            delta = store["rew"][t] + 0.97 * nxt_val * alive - store["val"][t]
            adv[t] = run = delta + 0.97 * 0.95 * alive * run
        store["adv"], store["ret"] = adv, adv + store["val"]
        return {k: v.flatten(0, 1) for k, v in store.items()}


def losses(model, batch, idx, clip):
    _, logp, ent, val = model(batch["obs"][idx], batch["act"][idx])
    logratio = logp - batch["logp"][idx]
    ratio = logratio.exp()
    adv = batch["adv"][idx]
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    pg = torch.max(-adv * ratio, -adv * ratio.clamp(1 - clip, 1 + clip)).mean()
    with torch.no_grad():
        kl = ((ratio - 1) - logratio).mean()
    return pg + 0.5 * (val - batch["ret"][idx]).pow(2).mean() - 0.001 * ent.mean(), kl


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    random.seed(args.seed + rank)
    rng = np.random.default_rng(args.seed + 100 * rank)
    torch.manual_seed(args.seed + rank)

    agent = Agent()
    model = DDP(agent)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, eps=1e-5)
    rollout = Rollout(args, PointMassVec(args.num_envs, rng))
    region = TrustRegion(args.target_kl, args.update_epochs)

    for it in range(args.iterations):
        batch = rollout.collect(agent)
        size = batch["obs"].shape[0]
        for _ in region.rounds():
            order = torch.randperm(size)
            total_kl = 0.0
            for start in range(0, size, args.minibatch):
                loss, approx_kl = losses(model, batch, order[start:start + args.minibatch], args.clip_coef)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                opt.step()
                total_kl += approx_kl
            region.note(total_kl / (size // args.minibatch))
        table = [None] * world
        dist.all_gather_object(table, {"reward": batch["rew"].mean().item(), "rounds": len(region.trace)})
        if rank == 0:
            mean = sum(row["reward"] for row in table) / world
            print(f"iter {it} reward {mean:.3f} rounds {[row['rounds'] for row in table]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

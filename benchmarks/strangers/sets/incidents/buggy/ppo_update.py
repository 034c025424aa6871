import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class PPOConfig:
    updates: int = 4
    ppo_epochs: int = 6
    rollout: int = 128
    minibatch: int = 32
    clip: float = 0.2
    target_kl: float = 0.004
    lr: float = 3e-3
    obs_dim: int = 6
    n_actions: int = 4
    world_size: int = 2


class Policy(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh())
        self.pi = nn.Linear(32, n_actions)
        self.v = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


def rollout(policy, cfg, gen):
    obs = torch.randn(cfg.rollout, cfg.obs_dim, generator=gen)
    with torch.no_grad():
        logits, value = policy.module(obs)
        d = torch.distributions.Categorical(logits=logits)
        act = d.sample()
        logp = d.log_prob(act)
    reward = (act == (obs.sum(1) > 0).long()).float()
    adv = reward - value
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    return obs, act, logp, adv, reward


def ppo_step(policy, opt, batch, cfg):
    obs, act, old_logp, adv, ret = batch
    logits, value = policy(obs)
    d = torch.distributions.Categorical(logits=logits)
    logp = d.log_prob(act)
    ratio = (logp - old_logp).exp()
    pg = -torch.min(ratio * adv, ratio.clamp(1 - cfg.clip, 1 + cfg.clip) * adv).mean()
    vf = (value - ret).pow(2).mean()
    loss = pg + 0.5 * vf - 0.01 * d.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return (0.5 * (logp - old_logp).pow(2)).mean().item()


def should_stop(kl, cfg):
    return kl > 1.5 * cfg.target_kl


def worker(rank, cfg):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29617")
    dist.init_process_group("gloo", rank=rank, world_size=cfg.world_size)
    torch.manual_seed(0)
    policy = DDP(Policy(cfg.obs_dim, cfg.n_actions))
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(100 + rank)
    torch.manual_seed(10 + rank)

    for update in range(cfg.updates):
        data = rollout(policy, cfg, gen)
        kls = []
        for _ in range(cfg.ppo_epochs):
            stop = False
            for idx in torch.randperm(cfg.rollout, generator=gen).split(cfg.minibatch):
                kl = ppo_step(policy, opt, [t[idx] for t in data], cfg)
                kls.append(kl)
                if should_stop(kl, cfg):
                    stop = True
                    break
            if stop:
                break
        stats = [None] * cfg.world_size
        dist.all_gather_object(stats, {"reward": data[4].mean().item(), "kl": max(kls), "n": len(kls)})
        if rank == 0:
            r = sum(s["reward"] for s in stats) / len(stats)
            print(f"update {update} reward {r:.3f} minibatches {stats[0]['n']}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    cfg = PPOConfig()
    mp.spawn(worker, args=(cfg,), nprocs=cfg.world_size)

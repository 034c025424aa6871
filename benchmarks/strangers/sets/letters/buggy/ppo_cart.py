"""PPO on a toy balancing task; every worker has its own environments, the policy is shared through DDP."""
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel

N_ENV, HORIZON, ITERS = 8, 32, 4
EPOCHS, MINIBATCH = 6, 64
CLIP, TARGET_KL, GAMMA = 0.2, 0.012, 0.97


def open_port():
    s = socket.socket()
    s.bind(("localhost", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def env_reset(n, gen):
    return torch.randn(n, 4, generator=gen) * 0.1


def env_step(state, action, gen):
    push = action.float() * 2 - 1
    pos, vel, ang, spin = state.unbind(1)
    spin = spin + 0.1 * ang + 0.15 * push + 0.02 * torch.randn(len(ang), generator=gen)
    vel = vel - 0.05 * push
    nxt = torch.stack([pos + 0.1 * vel, vel, ang + 0.1 * spin, spin], 1)
    reward = 1.0 - nxt[:, 2].abs() - 0.1 * nxt[:, 0].abs()
    return nxt.clamp(-3, 3), reward


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.pi = nn.Linear(48, 2)
        self.v = nn.Linear(48, 1)

    def forward(self, s):
        h = self.body(s)
        return self.pi(h), self.v(h).squeeze(-1)


@torch.no_grad()
def collect(net, state, gen):
    rows = []
    for _ in range(HORIZON):
        logits, value = net(state)
        d = Categorical(logits=logits)
        a = d.sample()
        nxt, r = env_step(state, a, gen)
        rows.append((state, a, d.log_prob(a), r, value))
        state = nxt
    s, a, lp, r, v = (torch.stack(t) for t in zip(*rows))
    ret, acc = torch.zeros_like(r), net(state)[1]
    for t in reversed(range(HORIZON)):
        acc = r[t] + GAMMA * acc
        ret[t] = acc
    flat = [t.reshape(-1, *t.shape[2:]) for t in (s, a, lp, ret, ret - v)]
    return state, flat, r.mean().item()


def improve(ddp, opt, flat):
    s, a, old, ret, adv = flat
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    passes = 0
    for _ in range(EPOCHS):
        kls = []
        for idx in torch.randperm(len(s)).split(MINIBATCH):
            logits, value = ddp(s[idx])
            d = Categorical(logits=logits)
            logr = d.log_prob(a[idx]) - old[idx]
            ratio = logr.exp()
            gain = torch.min(ratio * adv[idx], ratio.clamp(1 - CLIP, 1 + CLIP) * adv[idx]).mean()
            loss = -gain + 0.5 * (value - ret[idx]).square().mean() - 0.01 * d.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            kls.append(((ratio - 1) - logr).mean().item())
        passes += 1
        kl = sum(kls) / len(kls)
        if kl > 1.5 * TARGET_KL:
            break
    return passes, kl


def worker(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=rank, world_size=world)
    torch.manual_seed(50 + rank)
    gen = torch.Generator().manual_seed(900 + rank)
    ddp = DistributedDataParallel(ActorCritic())
    opt = torch.optim.Adam(ddp.parameters(), lr=2e-3)
    state = env_reset(N_ENV, gen)
    for it in range(ITERS):
        state, flat, reward = collect(ddp.module, state, gen)
        passes, kl = improve(ddp, opt, flat)
        print(f"[{rank}] iter {it} reward {reward:.3f} passes {passes} kl {kl:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2, open_port()), nprocs=2)

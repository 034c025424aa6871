import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributions import Categorical


class Peers:
    """All the talking between the actors goes through here."""

    def __init__(self):
        dist.init_process_group("gloo")
        self.me, self.n = dist.get_rank(), dist.get_world_size()

    def mean_(self, t):
        dist.all_reduce(t)
        t.div_(self.n)
        return t

    def same_start(self, module):
        for t in list(module.parameters()) + list(module.buffers()):
            dist.broadcast(t.data, src=0)

    def average_grads(self, module):
        for p in module.parameters():
            if p.grad is not None:
                self.mean_(p.grad)

    def close(self):
        dist.destroy_process_group()


class Balance:
    """A stick on a cart, much simplified; many copies at once."""

    def __init__(self, n, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.n = n

    def reset(self):
        self.s = (torch.rand(self.n, 2, generator=self.g) - 0.5) * 0.4
        self.alive = torch.ones(self.n, dtype=torch.bool)
        return self.s

    def step(self, a):
        push = (a.float() * 2 - 1) * 0.12
        kick = torch.randn(self.n, generator=self.g) * 0.02
        vel = self.s[:, 1] + 0.15 * self.s[:, 0] + push + kick
        self.s = torch.stack([self.s[:, 0] + 0.3 * vel, vel], 1)
        self.alive &= self.s[:, 0].abs() < 0.8
        return self.s, self.alive.float()


def play(env, policy, horizon):
    s, logps, rewards, masks = env.reset(), [], [], []
    for _ in range(horizon):
        pi = Categorical(logits=policy(s))
        a = pi.sample()
        masks.append(env.alive.float())
        s, r = env.step(a)
        logps.append(pi.log_prob(a))
        rewards.append(r)
    return torch.stack(logps), torch.stack(rewards), torch.stack(masks)


def returns(rewards, gamma=0.97):
    out, acc = [], torch.zeros(rewards.size(1))
    for r in rewards.flip(0):
        acc = r + gamma * acc
        out.append(acc)
    return torch.stack(out[::-1])


def policy_loss(logps, rewards, masks, peers):
    ret = returns(rewards)
    adv = (ret - ret.mean(1, keepdim=True)) * masks
    return -(logps * adv).sum() / logps.numel()


def main():
    peers = Peers()
    torch.manual_seed(500 + peers.me)
    policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
    peers.same_start(policy)
    opt = torch.optim.SGD(policy.parameters(), lr=0.25)
    env = Balance(32, seed=900 + peers.me)
    for it in range(40):
        logps, rewards, masks = play(env, policy, 40)
        loss = policy_loss(logps, rewards, masks, peers)
        opt.zero_grad()
        loss.backward()
        peers.average_grads(policy)
        opt.step()
        length = peers.mean_(rewards.sum(0).mean())
        if peers.me == 0 and it % 5 == 4:
            print(f"iter {it + 1} mean length {length.item():.2f}", flush=True)
    peers.close()


if __name__ == "__main__":
    main()

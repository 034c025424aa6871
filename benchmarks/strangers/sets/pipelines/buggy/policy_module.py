"""REINFORCE on a bandit; each worker has its own environment."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel


class Policy(nn.Module):
    def __init__(self, obs=6, act=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 24), nn.Tanh())
        self.pi, self.v = nn.Linear(24, act), nn.Linear(24, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


class Agent:
    def __init__(self, rank):
        self.gen = torch.Generator().manual_seed(rank)
        self.net = DistributedDataParallel(Policy())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-3)

    def observe(self, n=32):
        return torch.randn(n, 6, generator=self.gen)

    @torch.no_grad()
    def act(self, obs):
        pi, _ = self.net.module(obs)
        return pi.sample()

    def learn(self, obs, action, reward):
        pi, value = self.net.module(obs)
        adv = (reward - value).detach()
        loss = -(pi.log_prob(action) * adv).mean() + 0.5 * (reward - value).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    agent = Agent(rank)
    for it in range(40):
        obs = agent.observe()
        action = agent.act(obs)
        reward = (action == obs[:, :3].argmax(1)).float()
        agent.learn(obs, action, reward)
    s = sum(p.detach().sum() for p in agent.net.parameters()).item()
    print(f"rank {rank}: reward {reward.mean().item():.2f} parameter sum {s:.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()

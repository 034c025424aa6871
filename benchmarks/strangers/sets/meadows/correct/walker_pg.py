"""Policy gradient on a one-dimensional walker; episodes have different lengths per process."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributions import Categorical
from torch.nn.parallel import DistributedDataParallel


class Walker:
    """Walk from a random start to the goal without leaving the road."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def reset(self):
        self.at = float(torch.rand((), generator=self.g)) * 1.6 - 0.8
        self.steps = 0
        return self.view()

    def view(self):
        return torch.tensor([self.at, 1.0 - self.at, self.at**2])

    def step(self, action):
        self.at += (action - 1) * 0.2 + 0.05 * float(torch.randn((), generator=self.g))
        self.steps += 1
        if self.at > 1:
            return 1.0, True
        if self.at < -1:
            return -1.0, True
        return -0.02, self.steps >= 30


@torch.no_grad()
def rollout(env, net, episodes):
    states, actions, returns = [], [], []
    for _ in range(episodes):
        s, done, rewards = env.reset(), False, []
        while not done:
            a = Categorical(logits=net(s)).sample()
            states.append(s)
            actions.append(a)
            r, done = env.step(a.item())
            rewards.append(r)
            s = env.view()
        g, back = 0.0, []
        for r in reversed(rewards):
            g = r + 0.97 * g
            back.append(g)
        returns += reversed(back)
    return torch.stack(states), torch.stack(actions), torch.tensor(returns)


def world_moments(x):
    m = torch.tensor([float(len(x)), x.sum().item(), x.pow(2).sum().item()], dtype=torch.float64)
    dist.all_reduce(m)
    n, mean = m[0], m[1] / m[0]
    return n.item(), mean.item(), (m[2] / n - mean**2).clamp(min=1e-8).sqrt().item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(500 + rank)
    env = Walker(seed=900 + rank)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3)))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for it in range(15):
        s, a, g = rollout(env, net.module, episodes=6)
        n, mean, std = world_moments(g)
        logp = Categorical(logits=net(s)).log_prob(a)
        loss = -(logp * ((g - mean) / std)).sum() * world / n
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 5 == 4:
            print(f"it {it} mean return {mean:.3f} from {int(n)} steps", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

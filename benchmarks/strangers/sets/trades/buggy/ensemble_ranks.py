"""Small deep ensemble. The world is cut into teams, every team trains one
member with data parallelism inside the team, at the end the members vote.

torchrun --nproc_per_node=3 ensemble_ranks.py
"""
import torch
import torch.distributed as dist
from torch import nn

TEAMS = [[0], [1, 2]]


def moons(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.rand(n, generator=g) * 3.1416
    flip = torch.rand(n, generator=g) > 0.5
    x = torch.stack([torch.cos(t), torch.sin(t)], 1)
    x[flip] = torch.stack([1 - torch.cos(t[flip]), 0.5 - torch.sin(t[flip])], 1)
    return x + 0.15 * torch.randn(n, 2, generator=g), flip.long()


class Member(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.body(x))


class Team:
    """The process group of one ensemble member."""

    def __init__(self, index, ranks, group):
        self.index, self.ranks, self.group = index, ranks, group
        self.size = len(ranks)
        self.rank = dist.get_rank(group)

    def share_weights(self, module):
        for p in module.parameters():
            dist.broadcast(p.data, src=0, group=self.group)

    def average_grads(self, module):
        flat = torch.cat([p.grad.flatten() for p in module.parameters()])
        dist.all_reduce(flat, group=self.group)
        flat /= self.size
        offset = 0
        for p in module.parameters():
            p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()


def build_teams():
    mine = None
    for i, ranks in enumerate(TEAMS):
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = Team(i, ranks, group)
    return mine


def train_member(team, x, y, steps=120, batch=48):
    # members should start from different points
    torch.manual_seed(1000 * team.index + dist.get_rank())
    net = Member(16 + 8 * team.index)
    team.share_weights(net)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    shard = range(team.rank, len(x), team.size)
    xs, ys = x[list(shard)], y[list(shard)]
    for step in range(steps):
        idx = torch.randint(0, len(xs), (batch // team.size,))
        loss = nn.functional.cross_entropy(net(xs[idx]), ys[idx])
        opt.zero_grad()
        loss.backward()
        team.average_grads(net)
        opt.step()
    return net


@torch.no_grad()
def vote(team, net, x, y):
    votes = torch.zeros(len(x), 2)
    if team.rank == 0:
        votes += net(x).softmax(-1)
    dist.all_reduce(votes)
    own = (net(x).argmax(1) == y).float().mean().item()
    return own, (votes.argmax(1) == y).float().mean().item()


def main():
    dist.init_process_group("gloo")
    team = build_teams()
    x, y = moons(600, seed=0)
    xt, yt = moons(300, seed=1)
    net = train_member(team, x, y)
    own, together = vote(team, net, xt, yt)
    if team.rank == 0:
        print(f"member {team.index}: {own:.3f}  ensemble: {together:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

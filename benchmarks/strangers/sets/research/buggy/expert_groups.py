"""Mixture of experts, one expert pair replicated over groups of ranks (hierarchical averaging)."""
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def namespace(d):
    return SimpleNamespace(**{k: namespace(v) if isinstance(v, dict) else v for k, v in d.items()})


CFG = namespace({
    "model": {"dim": 16, "hidden": 32},
    "parallel": {"expert_groups": [[0, 3], [1, 2]]},
    "optim": {"lr": 3e-3, "steps": 25, "batch": 32},
})


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


class Trunk(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inp, self.out = nn.Linear(dim, dim), nn.Linear(dim, 1)

    def encode(self, x):
        return torch.tanh(self.inp(x))

    def forward(self, x, expert=None):
        h = self.encode(x)
        return self.out(h + expert(h))


def own_group(cfg, rank):
    for index, members in enumerate(cfg.parallel.expert_groups):
        if rank in members:
            return index, members
    raise ValueError(f"rank {rank} is in no expert group")


def build_groups(cfg, rank):
    index, members = own_group(cfg, rank)
    group = dist.new_group(ranks=members)
    return index, members, group


def sync_expert(expert, group, size):
    for p in expert.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= size


def work(cfg, rank):
    index, members, group = build_groups(cfg, rank)
    dist.barrier(group=group)
    if rank == members[0]:
        print(f"expert {index} lives on ranks {members}", flush=True)
    torch.manual_seed(10)
    trunk = DDP(Trunk(cfg.model.dim))
    torch.manual_seed(20 + index)
    expert = Expert(cfg.model.dim, cfg.model.hidden)
    opt = torch.optim.Adam([*trunk.parameters(), *expert.parameters()], lr=cfg.optim.lr)
    stream = torch.Generator().manual_seed(30 + rank)
    for step in range(cfg.optim.steps):
        x = torch.randn(cfg.optim.batch, cfg.model.dim, generator=stream)
        y = (x[:, :1] * (1 + index)).sin()
        loss = nn.functional.mse_loss(trunk(x, expert), y)
        opt.zero_grad()
        loss.backward()
        sync_expert(expert, group, len(members))
        opt.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f"final loss {total.item() / dist.get_world_size():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    assert dist.get_world_size() == 4, "this layout wants 4 ranks"
    work(CFG, dist.get_rank())
    dist.destroy_process_group()

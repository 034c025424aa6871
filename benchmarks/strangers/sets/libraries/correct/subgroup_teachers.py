"""Two pairs of workers, one teacher per pair; logits are shared inside a pair only."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Config:
    pairs = ((0, 1), (2, 3))
    classes, feats, steps = 5, 10, 10
    temperature = 2.0


def teacher(seed, cfg):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(cfg.feats, 20), nn.Tanh(), nn.Linear(20, cfg.classes))
    return net.requires_grad_(False)


def my_pair(cfg):
    found = None
    for index, ranks in enumerate(cfg.pairs):
        group = dist.new_group(list(ranks))
        if dist.get_rank() in ranks:
            found = index, ranks, group
    return found


def soft_targets(x, net, leader, group, cfg):
    """The leader of the pair runs its teacher for both members."""
    rank = dist.get_rank()
    both = [torch.empty_like(x) for _ in range(2)] if rank == leader else None
    dist.gather(x, both, dst=leader, group=group)
    answer = torch.empty(len(x), cfg.classes)
    if rank == leader:
        with torch.no_grad():
            out = [net(b) for b in both]
        dist.scatter(answer, out, src=leader, group=group)
    else:
        dist.scatter(answer, src=leader, group=group)
    return answer


def train(cfg):
    rank = dist.get_rank()
    index, ranks, group = my_pair(cfg)
    leader = ranks[0]
    net = teacher(100 + index, cfg) if rank == leader else None
    torch.manual_seed(0)
    student = DDP(nn.Sequential(nn.Linear(cfg.feats, 32), nn.ReLU(), nn.Linear(32, cfg.classes)))
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    gen = torch.Generator().manual_seed(60 + rank)
    for step in range(cfg.steps):
        x = torch.randn(16, cfg.feats, generator=gen)
        target = soft_targets(x, net, leader, group, cfg)
        t = cfg.temperature
        loss = F.kl_div((student(x) / t).log_softmax(1), (target / t).softmax(1), reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
    inside = loss.detach().clone()
    dist.all_reduce(inside, group=group)
    if rank == leader:
        print(f"pair {index}: {inside.item() / 2:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(Config)
    dist.barrier()
    dist.destroy_process_group()

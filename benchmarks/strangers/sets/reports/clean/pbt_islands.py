"""Population training: two islands of two processes, each island is data parallel in itself.

    torchrun --nproc_per_node=4 pbt_islands.py
"""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ISLAND_SIZE = 2


@dataclass
class Hyper:
    lr: float
    noise: float

    def as_tensor(self):
        return torch.tensor([self.lr, self.noise])

    @classmethod
    def from_tensor(cls, t):
        return cls(*t.tolist())


class Island:
    def __init__(self):
        world, rank = dist.get_world_size(), dist.get_rank()
        self.index = rank // ISLAND_SIZE
        groups = [dist.new_group(list(range(s, s + ISLAND_SIZE))) for s in range(0, world, ISLAND_SIZE)]
        self.group = groups[self.index]
        self.member = dist.get_rank(self.group)
        self.rng = torch.Generator().manual_seed(77 + rank)

    @property
    def leads(self):
        return self.member == 0

    def agree(self, hyper):
        """All members continue with the hyperparameters of the first member."""
        values = hyper.as_tensor()
        dist.broadcast(values, group_src=0, group=self.group)
        return Hyper.from_tensor(values)

    def perturb(self, hyper):
        up = 0.8 if torch.rand(1, generator=self.rng).item() < 0.5 else 1.25
        return Hyper(hyper.lr * up, hyper.noise / up)


def batch(g, noise):
    x = torch.randn(32, 10, generator=g)
    y = (x[:, :5].sum(1) > x[:, 5:].prod(1)).long()
    return x + noise * torch.randn(x.shape, generator=g), y


def train_round(model, hyper, g, steps=25):
    opt = torch.optim.SGD(model.parameters(), lr=hyper.lr, momentum=0.9)
    loss_sum = torch.zeros(1)
    for _ in range(steps):
        x, y = batch(g, hyper.noise)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_sum += loss.detach()
    return loss_sum / steps


def exploit(model, island, score):
    """The worse island restarts from the weights of the better one."""
    scores = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(scores, score)
    table = torch.cat(scores).view(-1, ISLAND_SIZE).mean(1)
    best = int(table.argmin())
    for p in model.parameters():
        copy = p.detach().clone()
        dist.broadcast(copy, src=best * ISLAND_SIZE)
        if island.index != best:
            p.data.copy_(copy)
    return best, table


def main():
    dist.init_process_group("gloo")
    island = Island()
    torch.manual_seed(island.index)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    model = DDP(net, process_group=island.group)
    hyper = Hyper(lr=0.05 * (1 + island.index), noise=0.1)
    g = torch.Generator().manual_seed(dist.get_rank())
    for generation in range(4):
        hyper = island.agree(island.perturb(hyper))
        score = train_round(model, hyper, g)
        best, table = exploit(model, island, score)
        if dist.get_rank() == 0:
            print(f"generation {generation}: losses {table.tolist()}, island {best} wins", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

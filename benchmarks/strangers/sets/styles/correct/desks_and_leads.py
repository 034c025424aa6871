"""Four processes at two desks: each desk trades its own market, leads swap notes, one network is shared."""
import argparse
from functools import lru_cache

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

DESKS = {"bonds": [0, 1], "metals": [2, 3]}
LEADS = [0, 2]


@lru_cache(maxsize=None)
def communicators():
    """First called by everybody in `main`; later calls only look the groups up."""
    groups = {name: dist.new_group(ranks) for name, ranks in DESKS.items()}
    groups["leads"] = dist.new_group(LEADS)
    return groups


class Desk:
    def __init__(self, rank):
        self.rank = rank
        self.name = next(n for n, ranks in DESKS.items() if rank in ranks)
        self.members = DESKS[self.name]
        self.lead = rank == self.members[0]

    @property
    def group(self):
        return communicators()[self.name]

    def mean(self, value):
        value = value.detach().clone()
        dist.all_reduce(value, group=self.group)
        return value / len(self.members)

    def orders(self, epoch):
        """The lead decides what the desk trades; the other one is told."""
        if self.lead:
            return self._announce(epoch)
        return self._listen()

    def _announce(self, epoch):
        box = [{"vol": 0.2 + 0.1 * (epoch % 3), "drift": -0.1 if self.name == "bonds" else 0.1}]
        dist.broadcast_object_list(box, src=self.rank, group=self.group)
        return box[0]

    def _listen(self):
        box = [None]
        dist.broadcast_object_list(box, src=self.members[0], group=self.group)
        return box[0]


def market(orders, g, n=32, length=12):
    step = orders["drift"] * torch.rand(n, 1, generator=g) + orders["vol"] * torch.randn(n, length, generator=g)
    path = step.cumsum(1)
    return path[:, :-1], (path[:, -1] > path[:, -2]).long()


class Trader(nn.Module):
    def __init__(self, length=11, width=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(length, width), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(width, 2) for name in DESKS})

    def forward(self, x, desk):
        h = self.shared(x)
        return self.heads[desk](h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--steps", type=int, default=8)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    communicators()
    desk = Desk(rank)
    model = DDP(Trader(), find_unused_parameters=True)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(rank)
    for epoch in range(args.epochs):
        orders = desk.orders(epoch)
        for _ in range(args.steps):
            x, y = market(orders, g)
            loss = F.cross_entropy(model(x, desk.name), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        level = desk.mean(loss)
        if desk.lead:
            notes = [None] * len(LEADS)
            dist.all_gather_object(notes, (desk.name, round(level.item(), 4)), group=communicators()["leads"])
            if rank == 0:
                print(f"epoch {epoch}", notes, flush=True)
    if rank % 2:
        dist.barrier()
    else:
        summary = sum(p.numel() for p in model.parameters())
        dist.barrier()
        if rank == 0:
            print(f"{summary} parameters", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Two views through one wrapper that searches, where the last forward leaves nothing out."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Towers(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Linear(4, width)
        self.of_users = nn.Linear(width, width)
        self.of_items = nn.Linear(width, width)

    def forward(self, x, kind):
        hidden = self.trunk(x)
        if kind == "user":
            return self.of_users(hidden)
        if kind == "plain":
            return hidden
        return self.of_items(hidden)


class Both(Towers):
    def forward(self, users, items):
        return self.of_users(self.trunk(users)), self.of_items(self.trunk(items))


def of_one_kind(towers, pairs, optimizer):
    for one, other in pairs:
        loss = -F.cosine_similarity(towers(one, "user"), towers(other, "user")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def the_whole_last(towers, pairs, optimizer):
    """What the first forward has not used, the second prepares anew."""
    for one, other in pairs:
        start = towers(one, "plain")
        loss = -F.cosine_similarity(start, towers(other, "user")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def one_learns(towers, pairs, optimizer):
    for one, other in pairs:
        with torch.no_grad():
            target = towers(one, "item")
        loss = -F.cosine_similarity(towers(other, "user"), target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def in_turn(towers, pairs, optimizer):
    for one, other in pairs:
        optimizer.zero_grad()
        towers(one, "user").square().mean().backward()
        towers(other, "item").square().mean().backward()
        optimizer.step()


def together(both, pairs, optimizer):
    for one, other in pairs:
        loss = -F.cosine_similarity(*both(one, other)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    towers = DistributedDataParallel(Towers(), find_unused_parameters=True)
    both = DistributedDataParallel(Both())
    optimizer = torch.optim.Adam([*towers.parameters(), *both.parameters()])
    pairs = torch.load("pairs.pt")
    of_one_kind(towers, pairs, optimizer)
    the_whole_last(towers, pairs, optimizer)
    one_learns(towers, pairs, optimizer)
    in_turn(towers, pairs, optimizer)
    together(both, pairs, optimizer)


main()

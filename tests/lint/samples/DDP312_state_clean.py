"""What each sample carries on is its own, and what is only told goes into nothing."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Carts:
    def __init__(self, number, draws):
        self.at, self.speed, self.draws = torch.zeros(number), torch.zeros(number), draws

    def push(self, force):
        self.speed = 0.9 * self.speed + 0.1 * force.detach()
        self.at = self.at + self.speed
        return torch.stack([self.at, self.speed], 1)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    carts = Carts(16, torch.Generator().manual_seed(dist.get_rank()))
    force, shown, hidden = torch.randn(16, generator=carts.draws), torch.zeros(()), None
    for turn in range(40):
        seen = carts.push(force)
        force = model(seen).squeeze(1)
        hidden = force.detach() if hidden is None else 0.5 * (hidden + force.detach())
        loss = (force - hidden).square().mean() + seen.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = 0.9 * shown + 0.1 * loss.detach().mean()
        if dist.get_rank() == 0:
            print(turn, shown)


main()

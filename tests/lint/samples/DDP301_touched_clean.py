"""A router that sends no row to an expert in some batches, and learns nothing for it then."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.last = nn.Linear(5, 1), nn.Linear(5, 1)
        self.quick, self.slow = nn.Linear(5, 5), nn.Sequential(nn.Linear(5, 5), nn.Tanh())

    def forward(self, rows):
        score = self.gate(rows).squeeze(1)
        to_slow = score > 0
        seen = self.quick(rows) * score.unsqueeze(1)
        if to_slow.all():
            seen = seen + self.slow(rows)
        elif to_slow.any():
            seen = seen + to_slow.unsqueeze(1) * self.slow(rows)
        else:
            seen = seen + 0.0 * sum(weight.mean() for weight in self.slow.parameters())
        if seen.max() > 2:
            found = nn.functional.linear(seen, self.last.weight, self.last.bias)
        else:
            found = self.last(seen)
        return found


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(Router())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(3, 5)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

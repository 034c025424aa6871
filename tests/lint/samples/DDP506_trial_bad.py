"""A copy with which a model's cost is counted that is kept, though the model is wrapped later, keeps its own start."""

import copy

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Adapter(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def count(model):
    probe = Adapter(copy.deepcopy(model))
    total = 0

    def add(module, args, output):
        nonlocal total
        total += output.numel()

    for each in probe.modules():
        each.register_forward_hook(add)
    probe(torch.zeros(1, 4))
    return probe, total


def main():
    dist.init_process_group("gloo")
    model = torch.nn.Linear(4, 1)
    average, total = count(model)  # <-- DDP506
    print(total)
    model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters(), strict=True):
                kept.lerp_(new, 0.1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

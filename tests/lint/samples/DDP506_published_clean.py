"""A teacher that rank 0 alone averages and publishes, and that all go on from in the next phase."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(model, teacher, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            with torch.no_grad():
                for slow, fast in zip(teacher.parameters(), model.module.parameters(), strict=True):
                    slow.mul_(0.9).add_(fast, alpha=0.1)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    model = DistributedDataParallel(nn.Linear(5, 2))
    teacher = copy.deepcopy(model.module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    draws = torch.Generator().manual_seed(dist.get_rank())
    train(model, teacher, optimizer, [torch.randn(4, 5, generator=draws) for _ in range(12)])
    if dist.get_rank() == 0:
        torch.save(teacher.state_dict(), "teacher.pt")
    dist.barrier()
    teacher.load_state_dict(torch.load("teacher.pt"))
    model.module.load_state_dict(teacher.state_dict())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

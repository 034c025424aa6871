import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@torch.no_grad()
def everybodys(rows):
    found = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(found, rows)
    return torch.cat(found)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    net = nn.Linear(9, 5)
    teacher = copy.deepcopy(net).requires_grad_(False)
    student = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(student.parameters())
    torch.manual_seed(100 + rank)
    queue = torch.zeros(64, 5)
    for _ in range(50):
        seen = torch.randn(4, 9)
        with torch.no_grad():
            keys = teacher(seen + 0.1)
        logits = student(seen) @ torch.cat([keys, queue]).t()
        loss = F.cross_entropy(logits, torch.arange(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), student.parameters()):
                old.mul_(0.99).add_(new, alpha=0.01)
        queue = torch.cat([everybodys(keys), queue])[:64]
    dist.destroy_process_group()


main()

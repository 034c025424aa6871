import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def epoch(ddp, optimizer, batches):
    """What is taken is another list's."""
    steps, times = [], [1.0, 2.0]
    for number, x in enumerate(batches):
        error = ddp(x).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        steps.append(error)  # <-- DDP601
        if number % 5 == 0 and times:
            print(times.pop())
    return steps


def whole(ddp, batches):
    kept, names = [], []
    for x in batches:
        error = ddp(x).square().mean()
        error.backward()
        kept.append(error)  # <-- DDP601
        names.append(len(kept))
        del names[0]
    return kept


dist.init_process_group("gloo")
model = DDP(torch.nn.Linear(8, 1))
data = [torch.rand(8, 8)] * 10
epoch(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
whole(model, data)

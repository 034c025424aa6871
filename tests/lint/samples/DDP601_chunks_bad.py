from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def epoch(ddp, optimizer, batches):
    """What is kept of the parts of all batches is not let go."""
    errors = []
    for batch in batches:
        optimizer.zero_grad()
        parts = batch.chunk(4)
        for number, part in enumerate(parts):
            with nullcontext() if number == len(parts) - 1 else ddp.no_sync():
                error = ddp(part).square().mean()
                errors.append(error)  # <-- DDP601
                error.backward()
        optimizer.step()
    return torch.stack(errors).mean()


dist.init_process_group("gloo")
model = DDP(torch.nn.Linear(8, 1))
epoch(model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.rand(8, 8)] * 10)

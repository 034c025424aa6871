import contextlib

import torch
import torch.distributed as dist
from metrics import first_measured, measured
from torch.nn.parallel import DistributedDataParallel as DDP


def main(steps=64, alone_from=8):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with model.no_sync() if step >= alone_from else contextlib.nullcontext():
            loss = model(torch.randn(4, 8)).square().mean()
            loss.backward()
        optimizer.step()  # <-- DDP315
        optimizer.zero_grad()
        if step % 8 == 7:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            error = measured(step) if step > 8 else first_measured(step)
            dist.all_reduce(error)


main()

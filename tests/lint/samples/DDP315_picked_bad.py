from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, every):
    ddp = DDP(net)
    optimizer = torch.optim.Adam(ddp.parameters())
    for number, batch in enumerate(batches):
        if number % every:  # <-- DDP315
            held = ddp.no_sync
        else:
            held = nullcontext
        with held():
            ddp(batch).mean().backward()
        if number % every == every - 1:
            optimizer.step()
            optimizer.zero_grad()

import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def one_pass(model, optimizer, loader, strict):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        value = loss.item()
        if not math.isfinite(value):
            print(f"the loss is {value}", file=sys.stderr)
            sys.exit(1)  # <- DDP405
        if strict:
            assert not torch.isnan(loss).any(), "NaN"  # <- DDP405
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    data = [(torch.randn(4), i % 3) for i in range(64)]
    sampler = DistributedSampler(data)
    model = DDP(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        one_pass(model, optimizer, DataLoader(data, 8, sampler=sampler), "--strict" in sys.argv)


if __name__ == "__main__":
    main()

import logging
import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def line():
    try:
        raise RuntimeError  # <- DDP405
    except LookupError:
        return sys.exc_info()[2].tb_frame.f_back.f_lineno


def main():
    dist.init_process_group("gloo")
    data = [(torch.randn(4), i % 3) for i in range(64)]
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, 8, sampler=sampler):
            loss = nn.functional.cross_entropy(model(x), y)
            if math.isnan(loss.item()):
                logging.warning("not a number, in line %s", line())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()

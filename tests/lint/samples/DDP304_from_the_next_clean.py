"""The optimizer steps at the end of a window, with whose last batch alone all reduce."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(window=4, epochs=3):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 1))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.ones(64, 8))
    sampler = DistributedSampler(data)
    batches = DataLoader(data, batch_size=4, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        first = 0
        for number, (batch,) in enumerate(batches):
            is_due = number - first + 1 == window
            with nullcontext() if is_due else model.no_sync():
                model(batch).mean().backward()
            if is_due:
                learner.step()
                learner.zero_grad()
                first = number + 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

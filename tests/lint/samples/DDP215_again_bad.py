"""Fields of which each rank streams its own files, and accelerate deals these out again."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset


class Fields(IterableDataset):
    def __init__(self, files, rank, world_size):
        self.files = files[rank::world_size]

    def __iter__(self):
        for file in self.files:
            yield from torch.load(file)


def main(files):
    accelerator = Accelerator()
    fields = Fields(files, accelerator.process_index, accelerator.num_processes)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(fields, batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)  # <-- DDP215
    for plot in loader:
        optimizer.zero_grad()
        accelerator.backward(model(plot).square().mean())
        optimizer.step()


def finetune(rows):
    accelerator = Accelerator()
    data = TensorDataset(rows)
    sampler = DistributedSampler(data, accelerator.num_processes, accelerator.process_index)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)  # <-- DDP215
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (row,) in loader:
            optimizer.zero_grad()
            accelerator.backward(model(row).square().mean())
            optimizer.step()

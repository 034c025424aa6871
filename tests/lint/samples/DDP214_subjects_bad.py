"""Rank 0 keeps the best by what it has seen of its own part, which TorchIO hands out."""

import os

import torch
import torch.distributed as dist
import torchio as tio
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


class Loader(tio.SubjectsLoader):
    def __iter__(self):
        return super().__iter__()


class Trainer:
    def __init__(self, model, loader, rank):
        self.model, self.loader, self.rank = model, loader, rank
        self.best = float("inf")
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def epoch(self):
        total = 0
        for step, batch in enumerate(self.loader, 1):
            image, label = batch["image"].cuda(), batch["label"].cuda()
            loss = (self.model(image) - label).square().mean()
            total += loss.item()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return total / step

    def train(self):
        for epoch in range(10):
            self.loader.sampler.set_epoch(epoch)
            loss = self.epoch()
            if self.rank == 0:
                if loss < self.best:  # <-- DDP214
                    self.best = loss
                    torch.save(self.model.module.state_dict(), "best.pth")


def main():
    dist.init_process_group("nccl")
    rank, device = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    data = tio.SubjectsDataset([], transform=None)
    loader = Loader(dataset=data, sampler=DistributedSampler(data), batch_size=2)
    model = DistributedDataParallel(torch.nn.Linear(2, 2).to(device), device_ids=[device])
    Trainer(model, loader, rank).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""A code is drawn for each sample, with noise that is filled in where it lies."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread, self.back = nn.Linear(8, 2), nn.Linear(8, 2), nn.Linear(2, 8)

    def forward(self, samples):
        spread = self.spread(samples).exp()
        noise = spread.new_empty(spread.shape).normal_()  # <-- DDP205
        return self.back(self.mean(samples) + spread * noise)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    samples = TensorDataset(torch.randn(64, 8))
    sampler = DistributedSampler(samples)
    model = DistributedDataParallel(Coder())
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (batch,) in DataLoader(samples, batch_size=8, sampler=sampler):
            optimizer.zero_grad()
            (model(batch) - batch).square().mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

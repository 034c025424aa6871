"""A layer is left out for some samples: what is drawn says only for which."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Path(nn.Module):
    def __init__(self, kept):
        super().__init__()
        self.layer, self.kept = nn.Linear(8, 8), kept

    def forward(self, samples):
        taken = self.kept + torch.rand(len(samples), 1)
        taken.floor_()
        return samples + self.layer(samples) / self.kept * taken


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    samples = TensorDataset(torch.randn(64, 8))
    sampler = DistributedSampler(samples)
    model = DistributedDataParallel(nn.Sequential(Path(0.9), Path(0.8)))
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

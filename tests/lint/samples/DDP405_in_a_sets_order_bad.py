import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Encoder(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.names = [name for name in set(words) & {"title", "body"}]
        self.parts = nn.ModuleDict({name: nn.Linear(4, 2) for name in sorted(self.names)})

    def forward(self, x):
        vectors = [self.parts[name](x) for name in self.names]
        if len(vectors) == 1:
            return vectors[0]
        return torch.mean(torch.stack(vectors, dim=1), dim=1)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Encoder(os.environ["WORDS"].split()))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(64, 4, generator=torch.Generator().manual_seed(0)))
    sampler = DistributedSampler(data)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        total = 0.0
        for (x,) in DataLoader(data, 8, sampler=sampler):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            total += loss.detach()
            loss.backward()
            optimizer.step()
            if torch.isnan(total):  # <-- DDP405
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

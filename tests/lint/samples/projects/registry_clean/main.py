import torch
import torch.distributed as dist
from models import DISTILLERS
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

OPTIONS = {"type": "hint", "lr": 0.1}


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    distiller = DISTILLERS[OPTIONS["type"]](nn.Linear(8, 8))
    distiller.distribute()
    optimizer = torch.optim.SGD(distiller.learnable(), lr=OPTIONS["lr"])
    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 8))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            distiller.loss(x, y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

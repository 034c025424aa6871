"""The data is fetched by one rank, and opened by all of them."""

import os

import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

FOLDER = os.path.join("data", "digits")


def fetch():
    torchvision.datasets.MNIST(FOLDER, download=True)


def batches(train, to_tensor):
    data = torchvision.datasets.MNIST(FOLDER, train=train, transform=to_tensor)
    sampler = DistributedSampler(data, shuffle=train)
    return sampler, DataLoader(data, batch_size=64, sampler=sampler, drop_last=True)


def main(net, to_tensor):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        fetch()
    sampler, loader = batches(True, to_tensor)  # <-- DDP407
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for images, digits in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), digits).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.nn.Linear(784, 10), torchvision.transforms.ToTensor())

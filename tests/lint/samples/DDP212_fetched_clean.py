"""Pictures that are fetched by rank 0 first."""

import sys

import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def pictures(folder, is_training):
    return torchvision.datasets.CIFAR10(
        folder, train=is_training, download=True, transform=torchvision.transforms.ToTensor()
    )


def main(folder):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        pictures(folder, True)
    dist.barrier()
    samples, held_back = pictures(folder, True), pictures(folder, False)
    sampler = DistributedSampler(samples)
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch, kinds in DataLoader(samples, batch_size=8, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), kinds).backward()
            optimizer.step()
    print(len(held_back))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])

import argparse
import os

import torch
import torch.distributed as dist
import torchvision.datasets as kinds
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="digits")
args = parser.parse_args()


class Pictures:
    def __init__(self, kind):
        if kind == "digits":
            train, val = kinds.MNIST("data", train=True), kinds.MNIST("data", train=False)
            self.own, val_sampler = DistributedSampler(train), DistributedSampler(val)
            self.train = DataLoader(train, 32, sampler=self.own)
            self.valid = DataLoader(val, 32, sampler=val_sampler)
        elif kind == "clothes":
            train, val = kinds.FashionMNIST("data"), kinds.FashionMNIST("data", train=False)
            self.own, val_sampler = DistributedSampler(train), DistributedSampler(val)
            self.train = DataLoader(train, 32, sampler=self.own)
            self.valid = DataLoader(val, 32, sampler=val_sampler)
        elif kind == "letters":
            train, val = kinds.KMNIST("data"), kinds.KMNIST("data", train=False)
            self.own, val_sampler = DistributedSampler(train), DistributedSampler(val)
            self.train = DataLoader(train, 32, sampler=self.own)
            self.valid = DataLoader(val, 32, sampler=val_sampler)
        elif kind == "things":
            train, val = kinds.CIFAR10("data"), kinds.CIFAR10("data", train=False)
            self.own, val_sampler = DistributedSampler(train), DistributedSampler(val)
            self.train = DataLoader(train, 32, sampler=self.own)
            self.valid = DataLoader(val, 32, sampler=val_sampler)
        elif kind == "many":
            train, val = kinds.CIFAR100("data"), kinds.CIFAR100("data", train=False)
            self.own, val_sampler = DistributedSampler(train), DistributedSampler(val)
            self.train = DataLoader(train, 32, sampler=self.own)
            self.valid = DataLoader(val, 32, sampler=val_sampler)


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    net = DistributedDataParallel(torch.nn.Linear(28, 2).cuda(), device_ids=[local_rank])
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    pictures = Pictures(args.kind)
    for epoch in range(10):
        pictures.own.set_epoch(epoch)
        for images, _ in pictures.train:
            opt.zero_grad()
            net(images.cuda()).sum().backward()
            opt.step()


main()

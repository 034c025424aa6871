import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def make_loader(data):
    return DataLoader(data, sampler=DistributedSampler(data, shuffle=False))


def main(data):
    loader = make_loader(data)  # <-- DDP201
    dist.init_process_group("gloo")
    return loader

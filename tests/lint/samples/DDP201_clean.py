import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def make_loader(data):
    return DataLoader(data, sampler=DistributedSampler(data, shuffle=False))


def main(data):
    dist.init_process_group("gloo")
    return make_loader(data)


def told(data):
    sampler = DistributedSampler(data, num_replicas=2, rank=0, shuffle=False)
    dist.init_process_group("gloo")
    return sampler

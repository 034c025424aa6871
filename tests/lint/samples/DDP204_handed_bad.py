import torch.distributed as dist
from torch.utils.data import DistributedSampler


def make(data, seed):
    return DistributedSampler(data, seed=seed)  # <-- DDP204


def train(data):
    sampler = make(data, 42 + dist.get_rank())
    sampler.set_epoch(0)

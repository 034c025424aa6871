from torch.utils.data import DistributedSampler


def make(data, seed, rank):
    return DistributedSampler(data, seed=seed + rank)  # <-- DDP204

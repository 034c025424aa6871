from torch.utils.data import DistributedSampler


def make(data, seed, rank):
    return DistributedSampler(data, rank=rank, num_replicas=4, seed=seed)

from torch.utils.data import DataLoader, DistributedSampler


def make(data, distributed):
    sampler = DistributedSampler(data) if distributed else None
    return DataLoader(data, shuffle=sampler is None, sampler=sampler)

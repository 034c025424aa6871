from torch.utils.data import DataLoader, DistributedSampler


def make(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, shuffle=True, sampler=sampler)  # <-- DDP209

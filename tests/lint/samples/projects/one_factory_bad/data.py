from torch.utils.data import DataLoader, DistributedSampler


def loader(samples):
    mine = DistributedSampler(samples)  # <-- DDP208
    return DataLoader(samples, batch_size=8, sampler=mine)

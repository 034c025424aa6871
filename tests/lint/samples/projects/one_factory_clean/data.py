from torch.utils.data import DataLoader, DistributedSampler


def loader(samples, in_order=False):
    mine = DistributedSampler(samples, shuffle=not in_order)
    return DataLoader(samples, batch_size=8, sampler=mine)

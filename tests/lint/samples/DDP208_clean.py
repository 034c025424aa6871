from torch.utils.data import DistributedSampler


def loaders(val_set):
    val_sampler = DistributedSampler(val_set, shuffle=False)
    return val_sampler

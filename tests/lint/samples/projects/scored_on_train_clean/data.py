from torch.utils.data import DataLoader, DistributedSampler


def loaders(train_set, held_out):
    mine = DistributedSampler(train_set)
    batches = DataLoader(train_set, batch_size=8, sampler=mine)
    others = DistributedSampler(held_out, shuffle=False)
    return batches, DataLoader(held_out, batch_size=8, sampler=others)

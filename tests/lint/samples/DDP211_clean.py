import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def build(net, data, sampler, batch_size, lr, world_size):
    model = DDP(net)
    loader = DataLoader(data, batch_size=batch_size // world_size, sampler=sampler)
    return model, loader, torch.optim.SGD(model.parameters(), lr=lr)


def build_larger(net, data, sampler, per_rank, lr, world_size):
    model = DDP(net)
    loader = DataLoader(data, batch_size=per_rank, sampler=sampler)
    return model, loader, torch.optim.SGD(model.parameters(), lr=lr)


def build_global(data, sampler, global_batch_size, world_size):
    alone = DataLoader(data, batch_size=global_batch_size)
    return alone, DataLoader(data, batch_size=global_batch_size // world_size, sampler=sampler)

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def build(net, data, sampler, batch_size, lr, world_size):
    model = DDP(net)
    per_rank = batch_size // world_size
    loader = DataLoader(data, batch_size=per_rank, sampler=sampler)
    return model, loader, torch.optim.SGD(model.parameters(), lr=lr * world_size)  # <-- DDP211


def build_global(data, sampler, global_batch_size):
    return DataLoader(data, batch_size=global_batch_size, sampler=sampler)  # <-- DDP211

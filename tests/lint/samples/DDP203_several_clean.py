import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def labelled(dataset):
    sampler = DistributedSampler(dataset)
    return DataLoader(dataset, sampler=sampler), sampler


def both(dataset, other):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    support_sampler = DistributedSampler(other)
    support = DataLoader(other, sampler=support_sampler)
    return loader, sampler, support, support_sampler


def make(name, dataset, other):
    if name == "cifar10":
        return both(dataset, other)
    elif name == "cifar10_fine_tune":
        return labelled(other)


def main(name, dataset, other, model, optimizer, epochs):
    dist.init_process_group("nccl")
    (loader, sampler, support, support_sampler) = make(name, dataset, other)
    model = DistributedDataParallel(model)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        if support_sampler is not None:
            support_sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()

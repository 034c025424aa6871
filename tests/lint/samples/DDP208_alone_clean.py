import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def make(dataset, batch_size, world_size, rank):
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    return DataLoader(dataset, batch_size, sampler=sampler), sampler


def main(train_set, val_set, model, optimizer, epochs):
    dist.init_process_group("nccl")
    loader, sampler = make(train_set, 32, dist.get_world_size(), dist.get_rank())
    val_loader, _ = make(val_set, 32, 1, 0)
    model = DistributedDataParallel(model)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        correct = 0
        with torch.no_grad():
            for inputs, targets in val_loader:
                correct += (model.module(inputs).argmax(dim=1) == targets).sum()
        print("correct:", correct.item())

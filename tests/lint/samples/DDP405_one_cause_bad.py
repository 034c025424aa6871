"""Who leaves an epoch leaves out its test, and then all the others: told once, where it begins."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def tested(model, x):
    with torch.no_grad():
        error = model.module(x).square().mean()
    dist.all_reduce(error)
    return error.item() / dist.get_world_size()


def main():
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = DistributedDataParallel(torch.nn.Linear(4, 1).to(device), device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(640, 4))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        is_broken = False
        for (x,) in loader:
            loss = model(x.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if torch.isnan(loss.data):  # <-- DDP405
                is_broken = True
                break
        if not is_broken:
            print(tested(model, torch.ones(8, 4, device=device)))
        if is_broken:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

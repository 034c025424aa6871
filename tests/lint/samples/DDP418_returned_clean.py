import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def total(errors):
    if len(errors) > 0:
        x = torch.tensor(errors).sum()
        dist.all_reduce(x)
        return x
    x = torch.zeros(())
    dist.all_reduce(x)
    return x


def main(rows):
    dist.init_process_group("gloo")
    loader = DataLoader(rows, sampler=DistributedSampler(rows))
    model = DDP(nn.Linear(4, 1))
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        errors = []
        for x, y in loader:
            loss = model(x).sum()
            loss.backward()
            if loss.item() > 1:
                errors.append(loss.item())
        print(total(errors))


if __name__ == "__main__":
    main(torch.load("rows.pt"))

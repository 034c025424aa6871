import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def keep(state, is_best, name):
    torch.save(state, name)
    if is_best:
        shutil.copyfile(name, "best.pt")


def one_epoch(model, loader):
    hits = seen = 0
    for rows, labels in loader:
        scores = model(rows)
        scores.sum().backward()
        hits += (scores.argmax(1) == labels).sum().item()
        seen += len(labels)
    total = torch.tensor([hits, seen])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main(rows):
    dist.init_process_group("gloo")
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=8, sampler=sampler)
    model = DDP(nn.Linear(4, 2))
    best = 0.0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        accuracy = one_epoch(model, loader)
        if dist.get_rank() == 0:
            is_best = accuracy > best
            best = max(accuracy, best)
            keep(model.module.state_dict(), is_best, f"epoch{epoch}.pt")


if __name__ == "__main__":
    main(torch.load("rows.pt"))

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def evaluate(model, loader):
    return sum(float(model(batch).mean()) for batch in loader)


def main(net, data, rank):
    model = DDP(net)
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    best = 0.0
    accuracy = evaluate(model, loader)
    if accuracy > best:  # <-- DDP214
        best = accuracy
        if rank == 0:
            torch.save(model.module.state_dict(), "best.pt")

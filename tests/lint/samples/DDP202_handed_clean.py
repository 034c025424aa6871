import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset


def make(data):
    return DataLoader(data, batch_size=8, shuffle=True)


def epoch(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()


def evaluate(model, loader):
    for batch in loader:
        print(model(batch))


def train(net, data, optimizer, rank, world):
    model = DDP(net)
    loader = make(Subset(data, range(rank, len(data), world)))
    epoch(model, loader, optimizer)
    whole = DataLoader(data, batch_size=8)
    evaluate(model, whole)
    dealt = DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator())
    epoch(model, dealt, optimizer)

from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


def make(data):
    sampler = None
    return DataLoader(data, batch_size=8, shuffle=True, sampler=sampler)  # <-- DDP202


def epoch(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()


def train(net, data, optimizer):
    model = DDP(net)
    loader = make(data)
    epoch(model, loader, optimizer)

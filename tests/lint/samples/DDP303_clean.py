import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, loss_of, optimizer):
    model = DDP(net)
    for x, y in loader:
        loss = loss_of(model(x), y)
        loss.backward()
        loss_of(model.forward(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            print(model.module(x))


@torch.no_grad()
def evaluate(net, x):
    model = DDP(net)
    return model.module(x)

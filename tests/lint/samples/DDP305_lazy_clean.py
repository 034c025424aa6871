"""Lazy heads that have their width before they are wrapped: by a sample, or a checkpoint."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten())
        self.head = nn.LazyLinear(classes)

    def forward(self, x):
        return self.head(self.body(x))


class Sized(Net):
    """It runs itself once, when it is made."""

    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self(torch.zeros(1, 1, 28, 28))


def fit(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    batches = torch.load("batches.pt")
    by_sample, by_state = Net(), Net()
    by_sample(batches[0][0][:1])
    by_state.load_state_dict(torch.load("net.pt", map_location="cpu"))
    for net in (by_sample, by_state, Sized()):
        fit(DDP(net), batches)


main()

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Open(DistributedDataParallel):
    """What the wrapper lacks, the module has."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


class Noted(DistributedDataParallel):
    """What the wrapper lacks, its notes have."""

    notes = {"encode": abs}

    def __getattr__(self, name):
        return self.notes[name] if name in self.notes else super().__getattr__(name)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.width = 4

    def encode(self, x):
        return self.body(x)

    def forward(self, x):
        return self.encode(x)


class Logged(DistributedDataParallel):
    def __init__(self, module, place):
        super().__init__(module)
        self.place = place


def main():
    dist.init_process_group("gloo")
    net = Open(Net())
    noted = Noted(Net())
    other = Logged(Net(), "log")
    opt = torch.optim.SGD([*net.parameters(), *other.parameters(), *noted.parameters()], lr=0.1)
    for _ in range(3):
        x = torch.randn(2, net.width)
        found = net.encode(x)  # <-- DDP303
        noted.encode(-1)
        (noted(x).mean() + found.mean() + other(x).mean()).backward()
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()


main()

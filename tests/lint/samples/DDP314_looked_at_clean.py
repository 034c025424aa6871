import torch
from torch.nn.parallel import DistributedDataParallel


def error_of(net, part):
    return (net(part) - part).pow(2).mean()


class Loop:
    def __init__(self, model, optimizer):
        self.net, self.optimizer = DistributedDataParallel(model), optimizer

    def step(self, parts, kept):
        with torch.no_grad():
            before = error_of(self.net, kept)
        self.optimizer.zero_grad()
        with self.net.no_sync():
            for part in parts[:-1]:
                error_of(self.net, part).backward()
        error_of(self.net, parts[-1]).backward()
        self.optimizer.step()
        return before

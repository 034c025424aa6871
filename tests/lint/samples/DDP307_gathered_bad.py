import math

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Engine:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = DistributedDataParallel(net), optimizer

    def update(self, loss, count):
        whole = torch.tensor(float(count))
        dist.all_reduce(whole)
        (loss / whole).backward()
        self.optimizer.step()
        return whole

    def see(self, batch):
        loss = self.net(batch).sum()
        if not torch.isfinite(loss):
            return None  # <-- DDP307
        return self.update(loss, len(batch))


def train(net, optimizer, loader):
    model = DistributedDataParallel(net)
    for batch in loader:
        loss = model(batch).sum()
        if math.isfinite(loss.item()):  # <-- DDP307
            counts = [torch.zeros(()) for _ in range(dist.get_world_size())]
            dist.all_gather(counts, torch.tensor(float(len(batch))))
            (loss / torch.stack(counts).sum()).backward()
            optimizer.step()


def main(net, optimizer, loader):
    engine = Engine(net, optimizer)
    for batch in loader:
        engine.see(batch)

"""Errors by kind of station, reduced one kind after the other."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

KINDS = ("airport", "buoy", "ship", "synop")


class ByKind:
    def __init__(self):
        self.sums = {}
        self.seen = {}

    def add(self, errors, kinds):
        for kind, error in zip(kinds.tolist(), errors.tolist()):
            name = KINDS[kind]
            self.sums[name] = self.sums.get(name, 0.0) + error
            self.seen[name] = self.seen.get(name, 0) + 1

    def means(self):
        found = {}
        for name, total in self.sums.items():  # <-- DDP413
            both = torch.tensor([total, self.seen[name]])
            dist.all_reduce(both)
            found[name] = (both[0] / both[1]).item()
        return found


def main(stations):
    dist.init_process_group("gloo")
    net = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    sampler = DistributedSampler(stations)
    loader = DataLoader(stations, batch_size=16, sampler=sampler)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        by_kind = ByKind()
        for seen, wanted, kinds in loader:
            errors = (net(seen)[:, 0] - wanted).square()
            optimizer.zero_grad()
            errors.mean().backward()
            optimizer.step()
            by_kind.add(errors.detach(), kinds)
        means = by_kind.means()
        if dist.get_rank() == 0:
            print(epoch, means)
    dist.destroy_process_group()

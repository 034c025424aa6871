"""A codebook, of which the codes that nobody uses are begun anew from the batch."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Codes(nn.Module):
    def __init__(self, many=32, size=8):
        super().__init__()
        self.inner = nn.Linear(16, size)
        self.table = nn.Embedding(many, size)
        self.outer = nn.Linear(size, 16)
        self.used = torch.zeros(many)
        self.last = None

    def forward(self, rows):
        found = self.inner(rows)
        nearest = torch.cdist(found, self.table.weight).argmin(1)
        self.used += torch.bincount(nearest, minlength=len(self.used))
        self.last = found.detach()
        codes = self.table(nearest)
        return self.outer(found + (codes - found).detach()), (
            codes - found.detach()
        ).square().mean()

    @torch.no_grad()
    def begin_anew(self):
        dist.all_reduce(self.used)
        dead = (self.used == 0).nonzero().flatten()
        picked = torch.randint(0, len(self.last), (len(dead),))
        fresh = self.last[picked]
        dist.broadcast(fresh, 0)
        self.table.weight[dead] = fresh
        self.used.zero_()


def main(data):
    dist.init_process_group("gloo")
    net = Codes()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = DistributedSampler(data)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for rows in DataLoader(data, 32, sampler=sampler, drop_last=True):
            optimizer.zero_grad()
            out, extra = model(rows)
            ((out - rows).square().mean() + extra).backward()
            optimizer.step()
        net.begin_anew()


main(torch.rand(4096, 16))

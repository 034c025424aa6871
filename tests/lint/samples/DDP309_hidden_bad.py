"""Inpainting of scans: what counts is what was hidden."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Inpainter(nn.Module):
    def __init__(self, wide=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(wide, 96), nn.SiLU(), nn.Linear(96, wide))

    def forward(self, scan, hidden):
        return self.body(scan.masked_fill(hidden, 0.0))


def hide(scan):
    return scan < 0.05


def learn(data, rate=1e-3):
    dist.init_process_group("gloo")
    scans = DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))
    torch.manual_seed(11 + dist.get_rank())
    painter = DDP(Inpainter())
    rule = torch.optim.RMSprop(painter.parameters(), rate)
    for scan in scans:
        hidden = hide(scan)
        off = (painter(scan, hidden) - scan).abs() * hidden
        count = hidden.sum()
        loss = off.sum() / count  # <- DDP309
        rule.zero_grad()
        loss.backward()
        rule.step()
        report(off.detach().sum(), count)


def report(off, count):
    both = torch.stack([off, count])
    dist.all_reduce(both)
    if dist.get_rank() == 0:
        print((both[0] / both[1]).item())


learn(torch.load("scans.pt"))

"""Slow weights of an encoder of spectra, kept by the first two ranks."""

import copy
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.getenv("RANK", -1))


def spectra(count, seed):
    source = torch.Generator().manual_seed(seed)
    return torch.rand(count, 8, 40, generator=source)


def main(rate=0.99):
    if RANK != -1:
        dist.init_process_group("gloo")
    encoder = nn.Sequential(nn.Linear(40, 16), nn.SiLU(), nn.Linear(16, 40))
    slow = None
    if RANK in {-1, 0, 1}:
        slow = copy.deepcopy(encoder).eval()  # <-- DDP506
    model = DistributedDataParallel(encoder) if RANK != -1 else encoder
    optimizer = torch.optim.Adam(model.parameters())
    for spectrum in spectra(60, RANK + 1):
        optimizer.zero_grad()
        (model(spectrum) - spectrum).square().mean().backward()
        optimizer.step()
        if slow is not None:
            with torch.no_grad():
                for kept, weight in zip(slow.parameters(), encoder.parameters()):
                    kept.lerp_(weight, 1 - rate)
    if slow is not None:
        print(RANK, slow(spectra(1, 0)[0]).mean().item())


if __name__ == "__main__":
    main()

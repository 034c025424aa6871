"""How fast each rank is by itself: the slowest one sets the pace of all."""

from __future__ import annotations

import statistics
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.probe.talk import Talk

_ROUNDS = 9


def compute(talk: Talk) -> float:
    """Median time of a matrix product on this rank, while all ranks compute."""
    side = 2048 if talk.device.type == "cuda" else 384
    matrix = torch.ones(side, side, device=talk.device)
    times = []
    for _ in range(_ROUNDS):
        talk.together()
        begun = time.perf_counter()
        for _ in range(4):
            matrix = (matrix @ matrix).clamp(0, 1)
        talk.settle()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def steps(talk: Talk) -> tuple[float, float]:
    """This rank's own part of a DDP step, and the whole step on the slowest rank (medians)."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers).to(talk.device))
    batch = torch.ones(64, 512, device=talk.device)
    own, whole = [], []
    for _ in range(_ROUNDS):
        talk.together()
        with model.no_sync():
            begun = time.perf_counter()
            model(batch).sum().backward()
            talk.settle()
            own.append(time.perf_counter() - begun)
        talk.together()
        begun = time.perf_counter()
        model(batch).sum().backward()
        talk.settle()
        whole.append(time.perf_counter() - begun)
    model.zero_grad()
    return statistics.median(own[1:]), statistics.median(talk.slowest(whole[1:]))

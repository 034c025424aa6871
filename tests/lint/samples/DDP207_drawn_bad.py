import random
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass(frozen=True)
class Trial:
    lr: float
    epochs: int


def drawn(rng):
    return Trial(10 ** rng.uniform(-3, -1), rng.choice([2, 3, 5]))


def score(trial, samples):
    model = DDP(nn.Linear(7, 1))
    optimizer = torch.optim.SGD(model.parameters(), trial.lr)  # <-- DDP216
    for _ in range(trial.epochs):  # <-- DDP207
        for x in samples:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def search(trials):
    dist.init_process_group("gloo")
    rng = random.Random()
    samples = torch.randn(8, 20, 7, generator=torch.Generator().manual_seed(dist.get_rank()))
    return min(score(drawn(rng), samples) for _ in range(trials))


search(6)

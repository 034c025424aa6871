import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.getenv("RANK", "-1"))


class Patience:
    def __init__(self, rounds):
        self.best, self.best_round, self.rounds = -1.0, 0, rounds

    def __call__(self, number, fitness):
        if fitness > self.best:
            self.best, self.best_round = fitness, number
        is_over = number - self.best_round >= self.rounds
        if is_over:
            print(f"no better for {self.rounds} rounds")
        return is_over


def fit(batches, rounds):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    patience, stop = Patience(3), False
    for number in range(rounds):
        for x, y in batches:
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if RANK in {-1, 0}:
            stop = patience(number, -loss.item())
        if RANK != -1:
            told = [stop if RANK == 0 else None]
            dist.broadcast_object_list(told, 0)
            if RANK == 0:
                stop = told[0]
        if stop:  # <-- DDP405
            break


fit([(torch.randn(8, 4), torch.randn(8, 1))] * 10, 100)

"""L-BFGS whose closure gives the loss of this rank's samples."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def fit(model, x, y, rounds=10):
    optimizer = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
    for _ in range(rounds):

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss  # <-- DDP405

        optimizer.step(closure)


class Fit:
    def __init__(self, model, x, y):
        self.model, self.x, self.y = model, x, y
        self.optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=50)

    def loss(self):
        self.optimizer.zero_grad()
        loss = (self.model(self.x) - self.y).abs().mean()
        loss.backward()
        return loss.item()  # <-- DDP405

    def run(self):
        for _ in range(5):
            self.optimizer.step(self.loss)


def main():
    dist.init_process_group("gloo")
    chance = torch.Generator().manual_seed(dist.get_rank())
    x = torch.randn(64, 4, generator=chance)
    y = x.sum(1, keepdim=True)
    fit(DDP(nn.Linear(4, 1)), x, y)
    Fit(DDP(nn.Linear(4, 1)), x, y).run()


main()

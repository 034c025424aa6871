"""Trainers, by name."""

import torch
import torch.distributed as dist


class Base:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self):
        for x, y in self.loader:
            loss = self.loss(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class PlainTrainer(Base):
    def loss(self, x, y):
        return (self.model(x) - y).square().mean()


class PastTrainer(Base):
    def loss(self, x, y):
        return (self.model(x) - y).square().mean()

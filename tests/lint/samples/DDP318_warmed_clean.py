import torch
from accelerate import Accelerator
from torch import nn


class Warmed(nn.Module):
    def __init__(self, optimizer, steps):
        super().__init__()
        self.optimizer = optimizer
        self.steps = steps
        self.done = 0

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.done += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, self.done / self.steps)
        self.optimizer.step()


class Trainer:
    def __init__(self, data):
        self.accelerator = Accelerator()
        self.model = nn.Linear(8, 1)
        self.optim = Warmed(torch.optim.SGD(self.model.parameters(), 0.1), 100)
        self.data = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
        self.model, self.optim, self.data = self.accelerator.prepare(
            self.model, self.optim, self.data
        )

    def train(self):
        for (batch,) in self.data:
            self.accelerator.backward(self.model(batch).square().mean())
            self.optim.step()
            self.optim.zero_grad()


if __name__ == "__main__":
    Trainer(torch.utils.data.TensorDataset(torch.randn(64, 8))).train()

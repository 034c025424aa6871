import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from averaging import Average
from torch import nn


class Trainer:
    def __init__(self, model, folder):
        self.accelerator, self.folder = Accelerator(), folder
        self.optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        self.average = Average(model, 0.9)
        self.model, self.optimizer = self.accelerator.prepare(model, self.optimizer)

    def resume(self, number):
        path = str(self.folder / f"model-{number}.pt")
        data = torch.load(path, map_location=self.accelerator.device)
        self.accelerator.unwrap_model(self.model).load_state_dict(data["model"])
        self.optimizer.load_state_dict(data["optimizer"])
        if self.accelerator.is_main_process:
            self.average.load_state_dict(data["average"])  # <-- DDP513

    def step(self, x):
        self.optimizer.zero_grad()
        self.accelerator.backward(self.model(x).pow(2).mean())
        self.optimizer.step()
        self.average.update()


def main():
    trainer = Trainer(nn.Linear(4, 1), Path("saved"))
    trainer.resume(int(sys.argv[1]))
    for _ in range(8):
        trainer.step(torch.randn(8, 4))


if __name__ == "__main__":
    main()

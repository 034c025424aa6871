"""What is wrapped at once, or in the first step, is wrapped once, and its module is the model."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.top = torch.nn.Sequential(torch.nn.Linear(4, 4))
        self.top.name = "top"

    def forward(self, x):
        return self.top(x)


class Trainer:
    def __init__(self, model, wrapped, graphs):
        self.wrapped, self.graphs, self.step = wrapped, graphs, -1
        self.model = model if graphs else wrapped(model)

    def warm(self, x):
        if self.step == 0:
            self.model = self.wrapped(self.model)
        self.model(x).sum().backward()

    def train_step(self, x):
        self.step += 1
        if not self.graphs:
            self.model(x).sum().backward()
            return
        if self.step < 10:
            return self.warm(x)
        self.model(x).sum().backward()


def main(graphs):
    dist.init_process_group("nccl")

    def wrapped(model):
        model.top = DDP(model.top)
        return model

    trainer = Trainer(Net(), wrapped, graphs)
    for each in torch.rand(8, 4):
        trainer.train_step(each)
    model = trainer.model
    top = model.top.module if hasattr(model.top, "module") else model.top
    print(top.name)


if __name__ == "__main__":
    import sys

    main(len(sys.argv) > 1)

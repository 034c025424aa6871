"""What is wrapped in the first step alone is wrapped once, and its module is the model."""

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
    def __init__(self, model):
        self.model, self.step = model, -1

    def train_step(self, x):
        self.step += 1
        if self.step == 0:
            self.model.top = DDP(self.model.top)
        self.model(x).sum().backward()


def main():
    dist.init_process_group("nccl")
    trainer = Trainer(Net())
    for each in torch.rand(8, 4):
        trainer.train_step(each)
    model = trainer.model
    top = model.top.module if hasattr(model.top, "module") else model.top
    print(top.name)


if __name__ == "__main__":
    main()

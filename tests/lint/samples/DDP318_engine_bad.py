import argparse

import deepspeed
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def tuned(model):
    return nn.Sequential(model, nn.Flatten(0))


class Trainer:
    def __init__(self, args):
        self.engine = args.deepspeed
        self.model = nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if args.deepspeed:
            self.model, self.optimizer, _, _ = tuned(self.model), self.optimizer, 0, 0
        if args.distributed:
            self.model = DistributedDataParallel(self.model)

    def step(self, batch):
        loss = self.model(batch).mean()
        if self.engine:
            self.model.backward(loss)  # <-- DDP318
            self.model.step()  # <-- DDP318
        else:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Settings(object):
    def __init__(self, **given):
        for name, value in given.items():
            setattr(self, name, value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--deepspeed", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    args = Settings(**vars(parser.parse_args()))
    if args.deepspeed:
        deepspeed.init_distributed()
    elif args.distributed:
        dist.init_process_group("gloo")
    trainer = Trainer(args)
    for _ in range(10):
        trainer.step(torch.randn(4, 8))


if __name__ == "__main__":
    main()

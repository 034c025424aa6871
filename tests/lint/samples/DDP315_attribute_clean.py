"""A stepper that counts its own micro-batches, with two modules and one optimizer."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Stepper:
    def __init__(self, parts, every):
        self.parts = {name: DDP(part) for name, part in parts.items()}
        self.opt = torch.optim.SGD([p for m in self.parts.values() for p in m.parameters()], 0.1)
        self.every, self.seen = every, 0

    @contextlib.contextmanager
    def held_back(self, hold):
        with contextlib.ExitStack() as stack:
            if hold:
                for part in self.parts.values():
                    stack.enter_context(part.no_sync())
            yield

    def feed(self, x, is_last):
        full = is_last or self.seen % self.every == 0
        with self.held_back(not full):
            loss = self.parts["head"](self.parts["body"](x)).square().mean() / self.every
            loss.backward()
        if full:
            self.opt.step()
            self.opt.zero_grad()

    def run(self, loader):
        self.seen = 0
        for (x,) in loader:
            self.seen += 1
            self.feed(x, self.seen == len(loader))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(90, 6))
    sampler = DistributedSampler(data)
    stepper = Stepper({"body": nn.Linear(6, 8), "head": nn.Linear(8, 1)}, every=4)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        stepper.run(loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

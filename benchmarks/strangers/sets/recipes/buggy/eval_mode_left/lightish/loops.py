import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .callbacks import BestKeeper
from .module import toy


class FitLoop:
    def __init__(self, net, epochs):
        self.model, self.epochs = DistributedDataParallel(net), epochs
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-2)
        self.callbacks, self.bests = [BestKeeper()], []

    def on_new_best(self, score):
        self.bests.append((self.epoch, score))

    def run(self):
        self.model.train()
        for self.epoch in range(self.epochs):
            x, y = toy(self.epoch * 10 + dist.get_rank(), 128)
            for a, b in zip(x.split(16), y.split(16)):
                loss = (self.model(a) - b).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            for cb in self.callbacks:
                cb.on_epoch_end(self)
        print(f"rank {dist.get_rank()} train loss {loss.item():.4f}", flush=True)

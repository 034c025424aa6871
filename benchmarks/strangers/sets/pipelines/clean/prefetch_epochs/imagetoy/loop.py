import torch
from torch.nn.parallel import DistributedDataParallel


class Loop:
    def __init__(self, loader, hooks):
        self.loader, self.hooks = loader, hooks
        self.model = DistributedDataParallel(torch.nn.Linear(6, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def run(self, epochs):
        for self.epoch in range(epochs):
            for h in self.hooks:
                h.before_epoch(self)
            for self.step, (x, y, index) in enumerate(self.loader):
                loss = (self.model(x).squeeze(1) - y).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.loss = loss.item()
                for h in self.hooks:
                    h.after_step(self, index)
            for h in self.hooks:
                h.after_epoch(self)

import torch
from torch.nn.parallel import DistributedDataParallel

from metrics import MeanMetric


class Trainer:
    def __init__(self, rt, steps):
        self.rt, self.steps = rt, steps
        torch.manual_seed(0)
        self.model = DistributedDataParallel(torch.nn.Linear(3, 1))
        self.metric = MeanMetric("loss")
        rt.on_close(self.report)

    def report(self):
        value = self.metric.compute()
        if self.rt.rank == 0:
            print(f"mean {self.metric.name} {value:.4f}", flush=True)

    def run(self):
        opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        g = torch.Generator().manual_seed(self.rt.rank)
        for _ in range(self.steps):
            x = torch.randn(8, 3, generator=g)
            loss = (self.model(x) - x.sum(1, keepdim=True)).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            self.metric.add(loss.item())

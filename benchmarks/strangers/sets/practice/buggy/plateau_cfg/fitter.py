import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def shots(n, seed):
    """plasma shots: 16 diagnostics in, time to disruption out"""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 16, generator=g)
    noise = torch.linspace(0.05, 1.5, n)[torch.randperm(n, generator=g)]
    y = (x[:, :4].prod(1) + x.sum(1)).tanh() + noise * torch.randn(n, generator=g)
    return TensorDataset(x, y[:, None])


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, v, n):
        self.total += v * n
        self.count += n

    @property
    def avg(self):
        return self.total / max(self.count, 1)

    def global_avg(self):
        t = torch.tensor([self.total, float(self.count)], dtype=torch.float64)
        dist.all_reduce(t)
        return (t[0] / t[1]).item()


class Fitter:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(0)
        self.net = DistributedDataParallel(
            nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
        self.opt = torch.optim.SGD(self.net.parameters(), **cfg.optim)
        self.sched = ReduceLROnPlateau(self.opt, **cfg.plateau)
        train, val = shots(256, 1), shots(64, 2)
        self.sampler = DistributedSampler(train)
        self.train_dl = DataLoader(train, cfg.batch_size, sampler=self.sampler)
        self.val_dl = DataLoader(val, cfg.batch_size,
                                 sampler=DistributedSampler(val, shuffle=False))
        self.crit = nn.MSELoss()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            self.net.train()
            for x, y in self.train_dl:
                loss = self.crit(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            meter = self.validate()
            self.report(epoch, meter)
            self.sched.step(meter.avg)

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        meter = AverageMeter()
        for x, y in self.val_dl:
            meter.add(self.crit(self.net(x), y).item(), len(x))
        return meter

    def report(self, epoch, meter):
        value = meter.global_avg()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} total_loss {value:.4f}", flush=True)

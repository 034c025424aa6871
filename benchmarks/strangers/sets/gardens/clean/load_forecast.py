"""Hour-ahead electricity load forecasting with a small GRU."""
import dataclasses

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclasses.dataclass
class Conf:
    hours: int = 1600
    window: int = 24
    hidden: int = 32
    batch: int = 32
    epochs: int = 4
    lr: float = 4e-3
    spike: float = 2.5
    seed: int = 12


def make_series(c):
    g = torch.Generator().manual_seed(c.seed)
    t = torch.arange(c.hours).float()
    y = torch.sin(t / 24 * 6.283) + 0.4 * torch.sin(t / 168 * 6.283)
    y = y + 0.1 * torch.randn(c.hours, generator=g)
    outage = torch.randint(0, c.hours, (12,), generator=g)
    y[outage] -= 9.0
    return y


class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, i):
        return self.series[i:i + self.width].unsqueeze(-1), self.series[i + self.width]


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1]).squeeze(-1)


class SpikeGuard:
    """Compares a loss with its running mean; outliers are not to move the weights."""

    def __init__(self, factor, warm=10):
        self.factor, self.warm = factor, warm
        self.mean, self.n, self.skipped = 0.0, 0, 0

    def accept(self, loss):
        value = loss.item()
        ok = self.n < self.warm or value < self.factor * self.mean
        if ok:
            self.n += 1
            self.mean += (value - self.mean) / min(self.n, 50)
        else:
            self.skipped += 1
        return ok


def mean_over_ranks(t):
    t = t.clone()
    dist.all_reduce(t)
    return t / dist.get_world_size()


def train(c):
    rank = dist.get_rank()
    torch.manual_seed(c.seed)
    data = Windows(make_series(c), c.window)
    sampler = DistributedSampler(data, seed=c.seed)
    loader = DataLoader(data, c.batch, sampler=sampler, drop_last=True)
    net = DistributedDataParallel(Forecaster(c.hidden))
    opt = torch.optim.Adam(net.parameters(), lr=c.lr)
    guard = SpikeGuard(c.spike)
    for epoch in range(c.epochs):
        sampler.set_epoch(epoch)
        tot = torch.zeros(2)
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            if guard.accept(mean_over_ranks(loss.detach())):
                opt.step()
            tot += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(tot)
        if rank == 0:
            print(f"epoch {epoch} mse {(tot[0] / tot[1]).item():.4f} skipped {guard.skipped}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(Conf())
    dist.destroy_process_group()

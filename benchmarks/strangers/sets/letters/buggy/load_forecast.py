"""Electricity load forecasting: one LSTM over the last two days, the next six hours come out."""
import functools

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, DistributedSampler

PAST, AHEAD = 48, 6


def on_main(fn):
    @functools.wraps(fn)
    def wrapped(*a, **k):
        return fn(*a, **k) if dist.get_rank() == 0 else None
    return wrapped


say = on_main(functools.partial(print, flush=True))


class Windows(Dataset):
    def __init__(self, start, count, stride=3):
        g = torch.Generator().manual_seed(60)
        t = torch.arange(3000).float()
        noise = torch.randn(3000, generator=g).cumsum(0) * 0.004
        self.series = (2 * torch.pi * t / 24).sin() + 0.4 * (2 * torch.pi * t / 168).sin() + noise
        self.series += 0.25 * torch.randn(3000, generator=g)
        self.at = [start + stride * i for i in range(count)]

    def __len__(self):
        return len(self.at)

    def __getitem__(self, i):
        a = self.at[i]
        w = self.series[a:a + PAST + AHEAD]
        return w[:PAST, None], w[PAST:]


class Forecaster(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, AHEAD)

    def forward(self, x):
        return x[:, -1] + self.head(self.rnn(x)[0][:, -1])


def fit(net, loader, opt):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def validate(net, loader):
    err = n = 0.0
    for x, y in loader:
        err += (net(x) - y).square().mean(1).sum().item()
        n += len(x)
    return err / n


def main(epochs=10):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(2)
    train, val = Windows(0, 160), Windows(600, 48, stride=7)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 16, sampler=sampler)
    val_loader = DataLoader(val, 16, sampler=DistributedSampler(val, shuffle=False))
    net = DDP(Forecaster())
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    plateau = ReduceLROnPlateau(opt, factor=0.5, patience=0, threshold=1e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        fit(net, loader, opt)
        score = validate(net.module, val_loader)
        plateau.step(score)
        say(f"epoch {epoch} val {score:.4f}")
    w = torch.cat([p.detach().flatten() for p in net.parameters()]).norm().item()
    print(f"rank {dist.get_rank()} lr {opt.param_groups[0]['lr']:.5f} |w| {w:.5f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

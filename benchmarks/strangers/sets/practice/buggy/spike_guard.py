import collections
import statistics

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SpikeGuard:
    """Refuses an update whose loss is far above the recent median."""

    def __init__(self, window=20, factor=3.0, warmup=5):
        self.hist = collections.deque(maxlen=window)
        self.factor, self.warmup = factor, warmup
        self.refused = 0

    def admit(self, loss):
        value = float(loss)
        ok = value == value
        if ok and len(self.hist) >= self.warmup:
            ok = value <= self.factor * statistics.median(self.hist)
        if ok:
            self.hist.append(value)
        else:
            self.refused += 1
        return ok


class Forecaster(nn.Module):
    def __init__(self, h=32):
        super().__init__()
        self.rnn = nn.LSTM(3, h, batch_first=True)
        self.out = nn.Linear(h, 3)

    def forward(self, seq):
        y, _ = self.rnn(seq)
        return self.out(y[:, -1])


def weather(gen, n=24, t=12):
    phase = 6.28 * torch.rand(n, 1, 3, generator=gen)
    k = torch.arange(t + 1).view(1, -1, 1)
    wave = torch.sin(0.5 * k + phase)
    if torch.rand(1, generator=gen).item() < 0.08:
        wave = wave * 8.0
    return wave[:, :-1], wave[:, -1]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(21)
    model = DDP(Forecaster())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 40, 0.5)
    guard = SpikeGuard()
    gen = torch.Generator().manual_seed(400 + rank)
    for step in range(80):
        x, y = weather(gen)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        if guard.admit(loss.detach()):
            opt.step()
        sched.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} refused {guard.refused}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

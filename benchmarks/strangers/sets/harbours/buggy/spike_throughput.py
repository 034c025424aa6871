"""Spiking classifier with per-worker speed statistics."""
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def reduce_across(values):
    t = torch.tensor(values, dtype=torch.float64)
    dist.barrier()
    dist.all_reduce(t)
    return t.tolist()


class ThroughputValue:
    def __init__(self):
        self.total_samples, self.total_time = 0, 0.0

    def update(self, samples, elapsed):
        self.total_samples += samples
        self.total_time += elapsed

    def synchronize_between_processes(self):
        self.total_samples, self.total_time = reduce_across([self.total_samples, self.total_time])

    @property
    def samples_per_second(self):
        return self.total_samples / self.total_time


class LossValue:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, v, n):
        self.total, self.count = self.total + v * n, self.count + n

    def synchronize_between_processes(self):
        self.total, self.count = reduce_across([self.total, self.count])

    @property
    def avg(self):
        return self.total / self.count


class Surrogate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (1 + 4 * v.abs()) ** 2


class SpikingNet(nn.Module):
    def __init__(self, T=6):
        super().__init__()
        self.T, self.fc1, self.fc2 = T, nn.Linear(20, 40), nn.Linear(40, 4)

    def forward(self, x):
        v, out = 0.0, 0.0
        for _ in range(self.T):
            v = 0.7 * v + self.fc1(x)
            s = Surrogate.apply(v - 1.0)
            v = v * (1 - s)
            out = out + self.fc2(s)
        return out / self.T


def train_one_epoch(model, opt, data, batch):
    speed, loss_meter = ThroughputValue(), LossValue()
    x, y = data
    for xb, yb in zip(x.split(batch), y.split(batch)):
        start = time.time()
        loss = nn.functional.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        speed.update(len(xb), time.time() - start)
        loss_meter.update(loss.item(), len(xb))
    for meter in (speed, loss_meter):
        meter.synchronize_between_processes()
    return speed.samples_per_second, loss_meter.avg


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(SpikingNet())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(20 + rank)
    y = torch.randint(0, 4, (480,), generator=g)
    x = 0.5 * torch.randn(480, 20, generator=g) + torch.eye(20)[y] * 2
    for epoch in range(3):
        begin = time.time()
        rate, loss = train_one_epoch(model, opt, (x, y), 16)
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f} throughput {rate:.0f} samples/s, took {time.time() - begin:.2f} s", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

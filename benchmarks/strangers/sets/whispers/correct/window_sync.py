"""Accumulation with a ragged last window; the loss is scaled by the size of the window."""
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Accumulator:
    def __init__(self, model, optimizer, window):
        self.model, self.optimizer, self.window = model, optimizer, window

    def epoch(self, loader):
        n = len(loader)
        for i, (x, y) in enumerate(loader):
            start = i - i % self.window
            size = min(self.window, n - start)
            boundary = i - start == size - 1
            with nullcontext() if boundary else self.model.no_sync():
                loss = nn.functional.cross_entropy(self.model(x), y)
                (loss / size).backward()
            if boundary:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
        return loss.item()


def main():
    dist.init_process_group("gloo")
    g = torch.Generator().manual_seed(2)
    x = torch.randn(176, 10, generator=g)
    ds = TensorDataset(x, x[:, :4].argmax(1))
    sampler = DistributedSampler(ds, drop_last=True)
    loader = DataLoader(ds, batch_size=8, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 4)))
    acc = Accumulator(model, torch.optim.SGD(model.parameters(), lr=0.3), window=4)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        loss = acc.epoch(loader)
    w = sum(p.detach().double().sum() for p in model.parameters())
    print(f"rank {dist.get_rank()} loss {loss:.4f} weight sum {w:.8f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

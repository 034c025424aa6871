# style: training loop with a loss-spike guard
# nproc: 3
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger("train")


class SpikeGuard:
    """Drops updates whose loss is far above the running mean."""

    def __init__(self, factor=4.0, momentum=0.9):
        self.factor = factor
        self.momentum = momentum
        self.mean = None

    def is_spike(self, loss):
        if self.mean is None:
            self.mean = loss
            return False
        spike = loss > self.factor * self.mean
        if not spike:
            self.mean = self.momentum * self.mean + (1 - self.momentum) * loss
        return spike


def stream(rank, steps):
    generator = torch.Generator().manual_seed(50 + rank)
    for step in range(steps):
        x = torch.randn(6, 10, generator=generator)
        y = x.mean(dim=1, keepdim=True)
        if rank == 1 and step in (5, 9):
            y = y + 300.0
        yield x, y


def train(rank, steps=16):
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    guard = SpikeGuard()
    for step, (x, y) in enumerate(stream(rank, steps)):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if guard.is_spike(loss.item()):
            logger.warning("rank %d: spike at step %d, skipped", rank, step)
            continue  # <-- DDP307
        optimizer.step()  # <-- DDP307
    return model


def main():
    logging.basicConfig(level=logging.ERROR)
    model = train(dist.get_rank())
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "final.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()

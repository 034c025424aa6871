"""Lens surface regression, network cut in two: rank 0 has the front, rank 1 the back.

torchrun --nproc-per-node 2 relay_lenses.py
"""
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

BATCH, PIECE, HIDDEN, EPOCHS = 32, 8, 48, 4


def surfaces(n=304, seed=13):
    g = torch.Generator().manual_seed(seed)
    coeff = torch.randn(n, 6, generator=g)
    target = torch.stack([coeff[:, 0] * coeff[:, 1], coeff[:, 2].sin(),
                          coeff[:, 3:].pow(2).sum(1) * 0.2], dim=1)
    return TensorDataset(coeff, target)


def loader():
    order = torch.Generator().manual_seed(77)
    return DataLoader(surfaces(), batch_size=BATCH, shuffle=True, generator=order)


class Front:
    """First half: sends activations on, gets their gradients back."""

    def __init__(self, peer):
        self.peer = peer
        self.net = nn.Sequential(nn.Linear(6, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-3)

    def batch(self, x, _):
        outs = []
        for piece in x.split(PIECE):
            h = self.net(piece)
            dist.send(h.detach(), self.peer)
            outs.append(h)
        self.opt.zero_grad()
        for h in outs:
            g = torch.empty_like(h)
            dist.recv(g, self.peer)
            h.backward(g)
        self.opt.step()


class Back:
    """Second half: has the loss."""

    def __init__(self, peer):
        self.peer = peer
        self.net = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 3))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.total, self.seen = 0.0, 0

    def batch(self, _, y):
        pieces = len(y.split(PIECE))
        inputs = []
        for _ in range(pieces):
            h = torch.empty(PIECE, HIDDEN)
            dist.recv(h, self.peer)
            inputs.append(h.requires_grad_())
        self.opt.zero_grad()
        for h, t in zip(inputs, y.split(PIECE)):
            loss = nn.functional.mse_loss(self.net(h), t) / pieces
            loss.backward()
            dist.send(h.grad, self.peer)
            self.total += loss.item() * pieces * len(t)
            self.seen += len(t)
        self.opt.step()

    def report(self, epoch):
        print(f"epoch {epoch} mse {self.total / self.seen:.4f}", flush=True)
        self.total, self.seen = 0.0, 0


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    half = Front(1) if rank == 0 else Back(0)
    data = loader()
    for epoch in range(EPOCHS):
        for x, y in data:
            half.batch(x, y)
        if rank == 1:
            half.report(epoch)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

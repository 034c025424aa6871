"""Two stage sequence model for limit order book data.

Stage 0 holds the event encoder, stage 1 the price head.  Micro-batches travel
through the stages in one-forward-one-backward order.

    torchrun --nproc_per_node 2 orderbook_stages.py
"""
import os
from collections import deque

import torch
import torch.distributed as dist
import torch.nn as nn

EVENTS, FEATURES, WIDTH = 20, 12, 48
MICRO, MICRO_BATCHES, STEPS = 16, 6, 8


class EventEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, WIDTH)
        self.mix = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.mix(torch.relu(self.embed(x)))[0].contiguous()


class PriceHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.Linear(WIDTH, 1)
        self.out = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3))

    def forward(self, h):
        w = self.attend(h).softmax(1)
        return self.out((w * h).sum(1))


class Book:
    """Both stages draw the same stream; each uses the part it needs."""

    def __init__(self):
        self.g = torch.Generator().manual_seed(99)

    def window(self):
        x = torch.randn(MICRO, EVENTS, FEATURES, generator=self.g)
        drift = x[:, -5:, 0].sum(1)
        y = 1 + (drift > 1).long() - (drift < -1).long()
        return x, y


class FrontStage:
    peer = 1
    warmup = 1

    def __init__(self):
        self.net = EventEncoder()
        self.pending = deque()
        self.outgoing = deque()

    def forward(self, x, _):
        h = self.net(x)
        self.pending.append(h)
        self.outgoing.append(dist.isend(h.detach(), self.peer))

    def backward(self):
        h = self.pending.popleft()
        grad = torch.empty_like(h)
        dist.recv(grad, self.peer)
        self.outgoing.popleft().wait()
        h.backward(grad)


class BackStage:
    peer = 0
    warmup = 0

    def __init__(self):
        self.net = PriceHead()
        self.pending = deque()
        self.loss = 0.0

    def forward(self, _, y):
        h = torch.empty(MICRO, EVENTS, WIDTH)
        dist.recv(h, self.peer)
        h.requires_grad_(True)
        loss = nn.functional.cross_entropy(self.net(h), y) / MICRO_BATCHES
        self.loss += loss.item()
        self.pending.append((h, loss))

    def backward(self):
        h, loss = self.pending.popleft()
        loss.backward()
        dist.send(h.grad, self.peer)


def run_step(stage, book):
    windows = [book.window() for _ in range(MICRO_BATCHES)]
    done = 0
    for i, (x, y) in enumerate(windows):
        stage.forward(x, y)
        if i >= stage.warmup:
            stage.backward()
            done += 1
    while done < MICRO_BATCHES:
        stage.backward()
        done += 1


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(5 + rank)
    stage = FrontStage() if rank == 0 else BackStage()
    opt = torch.optim.Adam(stage.net.parameters(), lr=3e-3)
    book = Book()
    for step in range(STEPS):
        opt.zero_grad()
        run_step(stage, book)
        opt.step()
        if rank == 1:
            print(f"step {step} loss {stage.loss:.4f}", flush=True)
            stage.loss = 0.0
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Rank 0 hands out audio segments for feature extraction, then all ranks train together.

    torchrun --nproc_per_node=4 dispatch_segments.py
"""
from collections import deque

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEGMENTS, FEATURES, DONE = 24, 12, -1


def extract(segment):
    """Spectrum of a synthetic recording; long segments take longer."""
    g = torch.Generator().manual_seed(segment)
    length = 256 * (1 + segment % 4)
    tone = torch.sin(torch.arange(length) * (0.05 + 0.2 * (segment % 3)))
    spectrum = torch.fft.rfft(tone + 0.2 * torch.randn(length, generator=g)).abs()
    return nn.functional.adaptive_avg_pool1d(spectrum[None, None], FEATURES).flatten().log1p()


class Dispatcher:
    """Hands each free worker one segment until none is left, then says goodbye."""

    def __init__(self, segments, workers):
        self.queue, self.workers = deque(segments), workers
        self.features = {}

    def serve(self):
        active = self.workers
        while active:
            message = torch.empty(2 + FEATURES)
            worker = dist.recv(message)
            if message[0] >= 0:
                self.features[int(message[0])] = message[2:].clone()
            job = self.queue.popleft() if self.queue else DONE
            dist.send(torch.tensor([job]), dst=worker)
            active -= job == DONE
        return torch.stack([self.features[s] for s in sorted(self.features)])


def work():
    report = torch.full((2 + FEATURES,), -1.0)
    while True:
        dist.send(report, dst=0)
        job = torch.empty(1, dtype=torch.long)
        dist.recv(job, src=0)
        if job.item() == DONE:
            return
        report = torch.cat([torch.tensor([job.item(), 1.0]), extract(job.item())])


def collect():
    if dist.get_rank() == 0:
        table = Dispatcher(range(SEGMENTS), dist.get_world_size() - 1).serve()
    else:
        work()
        table = torch.empty(SEGMENTS, FEATURES)
    dist.broadcast(table, src=0)
    return table


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    table = collect()
    target = torch.arange(SEGMENTS) % 3
    torch.manual_seed(rank)
    model = DDP(nn.Sequential(nn.LayerNorm(FEATURES), nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 3)))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    mine = torch.arange(rank, SEGMENTS, world)
    for step in range(60):
        loss = nn.functional.cross_entropy(model(table[mine]), target[mine])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        with torch.no_grad():
            right = (model.module(table).argmax(1) == target).sum().item()
        print(f"{right} of {SEGMENTS} segments right", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

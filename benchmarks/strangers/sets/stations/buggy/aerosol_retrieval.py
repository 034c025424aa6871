"""Aerosol optical depth from multi-angle radiances.

Gradient exchange overlaps with the backward pass.

    torchrun --nproc_per_node 2 aerosol_retrieval.py
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn


class OverlappedReducer:
    """Packs gradients in the order they become available and averages them."""

    def __init__(self, module, capacity):
        self.params = [p for p in module.parameters() if p.requires_grad]
        self.capacity = capacity
        self.world = dist.get_world_size()
        self.packed, self.filled = [], 0
        self.in_flight = []
        for p in module.parameters():
            dist.broadcast(p.data, src=0)
        for p in self.params:
            p.register_post_accumulate_grad_hook(self._ready)

    def _ready(self, p):
        self.packed.append(p)
        self.filled += p.numel()
        if self.filled >= self.capacity:
            self._launch()

    def _launch(self):
        flat = torch.cat([p.grad.flatten() for p in self.packed])
        flat /= self.world
        work = dist.all_reduce(flat, async_op=True)
        self.in_flight.append((work, flat, self.packed))
        self.packed, self.filled = [], 0

    def finish(self):
        for work, flat, params in self.in_flight:
            work.wait()
            sizes = [p.numel() for p in params]
            for p, g in zip(params, flat.split(sizes)):
                p.grad.copy_(g.view_as(p))
        self.in_flight.clear()
        self.packed, self.filled = [], 0


class Retrieval(nn.Module):
    def __init__(self, angles=9, bands=4, width=40):
        super().__init__()
        self.embed = nn.Linear(bands, 16)
        self.angle = nn.Parameter(torch.zeros(angles, 16))
        self.mix = nn.Sequential(nn.Linear(16 * angles, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.depth = nn.Linear(width, 1)

    def forward(self, radiance):
        h = torch.tanh(self.embed(radiance) + self.angle)
        return self.depth(self.mix(h.flatten(1))).squeeze(1)


def orbit(rank, batch):
    g = torch.Generator().manual_seed(20 + rank)
    surface = 0.2 + 0.2 * rank
    while True:
        depth = torch.rand(batch, 1, 1, generator=g)
        slant = torch.linspace(1.0, 2.2, 9).view(1, 9, 1)
        albedo = surface + 0.1 * torch.randn(batch, 1, 4, generator=g)
        band = torch.tensor([1.0, 0.8, 0.5, 0.3])
        rad = albedo * torch.exp(-depth * slant * band) + 0.15 * depth * slant * band
        yield rad + 0.01 * torch.randn(rad.shape, generator=g), depth.flatten()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--capacity", type=int, default=2000)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    model = Retrieval()
    reducer = OverlappedReducer(model, args.capacity)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    stream = orbit(rank, args.batch)

    for step in range(1, args.steps + 1):
        rad, depth = next(stream)
        loss = nn.functional.mse_loss(model(rad), depth)
        opt.zero_grad()
        loss.backward()
        reducer.finish()
        opt.step()
        if step % 20 == 0:
            shown = loss.detach().clone()
            dist.all_reduce(shown)
            if rank == 0:
                print(f"step {step} mse {shown.item() / 2:.5f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Frequency response model of a power grid with background snapshots.

    torchrun --nproc_per_node 2 grid_frequency.py
"""
import argparse
import io
import os
import queue
import tempfile
import threading

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SnapshotWriter:
    """Collects the per-area normaliser of every process next to the weights.

    Serialising takes a while on the cluster file system, so it happens in a
    worker thread while the simulation goes on.
    """

    def __init__(self, folder):
        self.folder = folder
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.group = dist.group.WORLD
        self.jobs = queue.Queue(maxsize=2)
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()
        self.written = 0

    def submit(self, step, weights, normaliser):
        weights = {k: v.detach().clone() for k, v in weights.items()}
        self.jobs.put((step, weights, normaliser.clone()))

    def _loop(self):
        while True:
            job = self.jobs.get()
            if job is None:
                return
            step, weights, normaliser = job
            buffer = io.BytesIO()
            torch.save(weights, buffer)
            areas = [torch.empty_like(normaliser) for _ in range(self.world)]
            dist.all_gather(areas, normaliser, group=self.group)
            if self.rank == 0:
                path = os.path.join(self.folder, f"snapshot_{step:05d}.pt")
                torch.save({"weights": buffer.getvalue(), "areas": areas}, path)
            self.written += 1

    def close(self):
        self.jobs.put(None)
        self.thread.join()


class Area:
    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(300 + rank)
        self.inertia = 2.0 + rank
        self.count = torch.zeros(())
        self.mean = torch.zeros(16)

    def batch(self, n):
        load = torch.randn(n, 16, generator=self.g) * self.inertia
        nadir = (load.cumsum(1) / self.inertia).min(1).values
        self.count += 1
        self.mean += (load.mean(0) - self.mean) / self.count
        return load - self.mean, nadir


class Response(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, load):
        return self.layers(load).squeeze(1)


def train(args, folder):
    rank = dist.get_rank()
    torch.manual_seed(12)
    model = DDP(Response(args.width))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    area = Area(rank)
    writer = SnapshotWriter(folder)
    shown = torch.zeros(())
    for step in range(1, args.steps + 1):
        load, nadir = area.batch(args.batch)
        loss = nn.functional.mse_loss(model(load), nadir)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shown += loss.detach()
        if step % args.snapshot_every == 0:
            writer.submit(step, model.module.state_dict(), area.mean)
        if step % 50 == 0:
            dist.all_reduce(shown)
            if rank == 0:
                print(f"step {step} loss {shown.item() / 50 / dist.get_world_size():.4f}", flush=True)
            shown.zero_()
    writer.close()
    dist.barrier()
    if rank == 0:
        print(f"{writer.written} snapshots in {folder}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--snapshot-every", type=int, default=5)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        train(args, folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

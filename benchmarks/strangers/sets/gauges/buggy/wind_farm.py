"""Wake model of a wind farm, language-model style training loop with periodic loss estimates.

    torchrun --nproc_per_node=2 wind_farm.py
"""
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

# -----------------------------------------------------------------------------
max_iters = 80
eval_interval = 10
eval_iters = 60
batch_size = 64
learning_rate = 2e-3
seed = 1337
# -----------------------------------------------------------------------------


def farm_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    wind = torch.rand(n, 64, generator=g)
    return wind, torch.cumsum(wind, 1).sin()[:, ::4]


class WakeNet(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
                                    nn.Linear(width, width), nn.GELU(), nn.Linear(width, 16))

    def forward(self, wind):
        return self.layers(wind)


class Batches:
    def __init__(self, rank):
        self.parts = {"train": farm_data(4096, 0), "val": farm_data(2048, 1)}
        self.rng = torch.Generator().manual_seed(seed + rank)

    def get(self, split, size=batch_size):
        x, y = self.parts[split]
        take = torch.randint(len(x), (size,), generator=self.rng)
        return x[take], y[take]


@torch.no_grad()
def estimate_loss(net, batches, iters):
    net.eval()
    out = {}
    for split in ("train", "val"):
        losses = torch.zeros(iters)
        for k in range(iters):
            x, y = batches.get(split, 256)
            losses[k] = nn.functional.mse_loss(net(x), y)
        out[split] = losses.mean().item()
    net.train()
    return out


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    master = rank == 0
    torch.manual_seed(seed)
    batches = Batches(rank)
    model = DDP(WakeNet())
    opt = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    busy, t0 = 0.0, time.time()
    for it in range(max_iters):
        if it % eval_interval == 0:
            if master:
                report = estimate_loss(model.module, batches, eval_iters)
                print(f"iter {it}: train {report['train']:.4f} val {report['val']:.4f}", flush=True)
            dist.barrier()
        t1 = time.time()
        x, y = batches.get("train")
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        busy += time.time() - t1
    if master:
        print(f"{max_iters} iterations in {time.time() - t0:.1f}s, of it {busy:.1f}s training")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

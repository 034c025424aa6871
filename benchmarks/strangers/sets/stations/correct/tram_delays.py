"""Delay model for a tram network, stops when nothing improves any more."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SETTINGS = dict(world=2, port="29777", epochs=12, steps=6, patience=2, accumulate=3, batch=20)


class DelayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stop = nn.Embedding(25, 8)
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, stop, weather):
        return self.net(torch.cat([self.stop(stop), weather], 1)).squeeze(1)


def rides(gen, n):
    stop = torch.randint(25, (n,), generator=gen)
    weather = torch.randn(n, 4, generator=gen)
    y = (stop % 5).float() * 0.4 + weather[:, 0].clamp(min=0) + 0.3 * torch.randn(n, generator=gen)
    return stop, weather, y


class Patience:
    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, float("inf"), 0

    def exhausted(self, value):
        if value < self.best - 0.01:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit


def should_stop(rank, patience, model, held):
    decision = torch.zeros(2)
    if rank == 0:
        with torch.no_grad():
            stop, weather, y = held
            value = nn.functional.l1_loss(model.module(stop, weather), y).item()
        decision = torch.tensor([value, float(patience.exhausted(value))])
    dist.broadcast(decision, src=0)
    return decision[0].item(), bool(decision[1])


def run(rank, cfg):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=cfg["port"])
    dist.init_process_group("gloo", rank=rank, world_size=cfg["world"])
    torch.set_num_threads(1)
    torch.manual_seed(9)
    model = DDP(DelayNet(), gradient_as_bucket_view=True)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(rank)
    held = rides(torch.Generator().manual_seed(99), 200) if rank == 0 else None
    patience = Patience(cfg["patience"]) if rank == 0 else None
    accumulate = cfg["accumulate"]
    for epoch in range(cfg["epochs"]):
        for _ in range(cfg["steps"]):
            opt.zero_grad()
            for k in range(accumulate):
                stop, weather, y = rides(gen, cfg["batch"])
                model.require_backward_grad_sync = k == accumulate - 1
                loss = nn.functional.l1_loss(model(stop, weather), y)
                (loss / accumulate).backward()
            opt.step()
        value, stop_now = should_stop(rank, patience, model, held)
        if rank == 0:
            print(f"epoch {epoch} held out {value:.3f}", flush=True)
        if stop_now:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(SETTINGS,), nprocs=SETTINGS["world"])

import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import Dataset, DataLoader
from torch.utils.data.distributed import DistributedSampler

CONFIG = dict(epochs=3, batch_size=8, lr=1e-3, hidden=48, n_cases=128, log_file="train_log.jsonl")


class FieldCases(Dataset):
    """(inlet profile, pressure field) pairs out of the solver."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        self.inp = torch.randn(n, 12, generator=g)
        self.out = torch.tanh(self.inp @ torch.randn(12, 20, generator=g))
        self.out[37, 4] = float("inf")

    def __len__(self):
        return len(self.inp)

    def __getitem__(self, i):
        return self.inp[i], self.out[i]


def build_model(hidden):
    return nn.Sequential(
        nn.Linear(12, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 20)
    )


def train_one_epoch(model, loader, opt, loss_fn, rank):
    model.train()
    total, count, bad = 0.0, 0, 0
    for inp, target in loader:
        opt.zero_grad(set_to_none=True)
        loss = loss_fn(model(inp), target)
        if not torch.isfinite(loss):
            bad += 1
            continue
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item()
        count += 1
    return total / max(count, 1), bad


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = FieldCases(CONFIG["n_cases"])
    sampler = DistributedSampler(data, shuffle=True, seed=11)
    loader = DataLoader(data, batch_size=CONFIG["batch_size"], sampler=sampler)
    model = DDP(build_model(CONFIG["hidden"]))
    opt = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"])
    loss_fn = nn.MSELoss()

    for epoch in range(CONFIG["epochs"]):
        sampler.set_epoch(epoch)
        t0 = time.time()
        mean_loss, bad = train_one_epoch(model, loader, opt, loss_fn, rank)
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, (mean_loss, bad))
        if rank == 0:
            rec = {"epoch": epoch, "loss": sum(r[0] for r in rows) / len(rows),
                   "skipped": sum(r[1] for r in rows), "sec": round(time.time() - t0, 2)}
            print(rec, flush=True)
            with open(CONFIG["log_file"], "a") as f:
                f.write(json.dumps(rec) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Cross-validation; every fold is its own group of processes on a port chosen by the parent.

Usage: python folds_fork.py

The folds run one after another. A fold writes its score to a small json file,
from which the parent makes the mean.
"""
import contextlib
import json
import os
import socket
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

FOLDS, NPROC = 2, 2


def pick_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def problem():
    rng = np.random.RandomState(0)
    x = rng.randn(1200, 5).astype("float32")
    y = (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]).astype("float32")
    return torch.from_numpy(x), torch.from_numpy(y)


def split(fold, n):
    order = np.random.RandomState(99).permutation(n)
    held = np.array_split(order, FOLDS)[fold]
    return np.setdiff1d(order, held), held


def fold_main(rank, fold, port, outdir):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=NPROC)
    torch.manual_seed(fold)
    x, y = problem()
    tr, va = split(fold, len(x))
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    per = len(tr) // NPROC
    for epoch in range(8):
        order = np.random.RandomState(epoch).permutation(tr)[: per * NPROC]
        mine = torch.from_numpy(order[rank * per:(rank + 1) * per].copy())
        for idx in mine.split(50):
            opt.zero_grad()
            nn.functional.mse_loss(net(x[idx]).squeeze(1), y[idx]).backward()
            opt.step()
    part = torch.from_numpy(va[rank::NPROC].copy())
    with torch.no_grad():
        err = (net.module(x[part]).squeeze(1) - y[part]).pow(2).sum().reshape(1)
    tot = torch.cat([err, torch.tensor([float(len(part))])])
    dist.all_reduce(tot)
    if rank == NPROC - 1:
        Path(outdir, f"fold{fold}.json").write_text(json.dumps({"mse": (tot[0] / tot[1]).item()}))
    dist.barrier()
    dist.destroy_process_group()


def run_fold(fold, outdir):
    port = pick_port()
    print(f"fold {fold} on port {port}", flush=True)
    mp.start_processes(fold_main, args=(fold, port, outdir), nprocs=NPROC, join=True, start_method="fork")
    return json.loads(Path(outdir, f"fold{fold}.json").read_text())["mse"]


def main():
    with tempfile.TemporaryDirectory() as out:
        scores = [run_fold(f, out) for f in range(FOLDS)]
    print("mse per fold", [round(s, 4) for s in scores], "mean", round(float(np.mean(scores)), 4))


if __name__ == "__main__":
    main()

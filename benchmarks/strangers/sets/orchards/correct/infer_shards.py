"""Train a small ranker, then write one prediction file per process and merge them."""
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CONF = json.loads("""{
  "rows": 3001, "features": 10, "batch": 64, "epochs": 3, "lr": 0.01, "seed": 77
}""")


def table(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, CONF["features"])).astype("float32")
    w = np.random.default_rng(0).normal(size=CONF["features"]).astype("float32")
    return torch.from_numpy(x), torch.from_numpy(x @ w + 0.1 * rng.normal(size=n).astype("float32"))


def shared_dir():
    box = [tempfile.mkdtemp(prefix="shards_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return Path(box[0])


def fit(net, x, y):
    opt = torch.optim.SGD(net.parameters(), lr=CONF["lr"], momentum=0.9)
    rank, world = dist.get_rank(), dist.get_world_size()
    usable = len(x) // (world * CONF["batch"]) * world * CONF["batch"]
    for epoch in range(CONF["epochs"]):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(CONF["seed"] + epoch))[:usable]
        for idx in order[rank::world].split(CONF["batch"]):
            loss = nn.functional.mse_loss(net(x[idx]).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print("epoch", epoch, "mse", round(loss.item(), 4), flush=True)


@torch.no_grad()
def write_part(net, x, folder):
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = np.array_split(np.arange(len(x)), world)[rank]
    pred = net.module(x[mine]).squeeze(1).numpy()
    np.savez(folder / f"part{rank:05d}.npz", ids=mine, pred=pred)
    return len(mine)


def merge(folder, n):
    full = np.full(n, np.nan, dtype=np.float32)
    for f in sorted(folder.glob("part*.npz")):
        z = np.load(f)
        full[z["ids"]] = z["pred"]
    assert not np.isnan(full).any()
    return full


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(CONF["seed"])
    net = DistributedDataParallel(nn.Sequential(nn.Linear(CONF["features"], 32), nn.ReLU(), nn.Linear(32, 1)))
    fit(net, *table(CONF["rows"], 1))
    folder = shared_dir()
    x, y = table(CONF["rows"] // 3, 2)
    n = write_part(net, x, folder)
    print(f"process {dist.get_rank()} wrote {n} rows", flush=True)
    dist.barrier()
    if dist.get_rank() == 0:
        pred = merge(folder, len(x))
        print("correlation", float(np.corrcoef(pred, y.numpy())[0, 1]))
        shutil.rmtree(folder)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Tabular regression with a plateau schedule on the validation error."""
import json
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

PARAMS = json.loads(os.environ.get("PARAMS", "{}")) or {
    "rows": 600, "cols": 12, "hidden": 32, "epochs": 14, "lr": 0.3, "factor": 0.5, "patience": 0, "threshold": 0.001}


def table(rows, cols, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, cols)).astype(np.float32)
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=rows)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y.astype(np.float32)))


def mlp(cols, hidden):
    return nn.Sequential(nn.Linear(cols, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))


def global_sum(*values):
    packed = torch.tensor(values, dtype=torch.double)
    dist.all_reduce(packed, op=dist.ReduceOp.SUM)
    return packed.tolist()


def train_epoch(model, loader, opt):
    model.train()
    sq = n = 0
    for x, y in loader:
        err = (model(x).squeeze(1) - y).pow(2)
        opt.zero_grad()
        err.mean().backward()
        opt.step()
        sq, n = sq + err.sum().item(), n + len(y)
    return sq, n


@torch.no_grad()
def validate(model, loader):
    model.eval()
    sq = n = 0
    for x, y in loader:
        sq += (model(x).squeeze(1) - y).pow(2).sum().item()
        n += len(y)
    return sq, n


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(31)
    train, val = table(PARAMS["rows"], PARAMS["cols"], 1), table(60, PARAMS["cols"], 2)
    sampler = DistributedSampler(train, seed=31)
    train_loader = DataLoader(train, batch_size=25, sampler=sampler)
    val_loader = DataLoader(torch.utils.data.Subset(val, range(rank, len(val), world)), batch_size=50)
    model = DistributedDataParallel(mlp(PARAMS["cols"], PARAMS["hidden"]))
    opt = torch.optim.SGD(model.parameters(), lr=PARAMS["lr"])
    sched = ReduceLROnPlateau(opt, factor=PARAMS["factor"], patience=PARAMS["patience"], threshold=PARAMS["threshold"])
    for epoch in range(PARAMS["epochs"]):
        sampler.set_epoch(epoch)
        t_sq, t_n = global_sum(*train_epoch(model, train_loader, opt))
        v_sq, v_n = global_sum(*validate(model, val_loader))
        sched.step(v_sq / v_n)
        if rank == 0:
            print(f"{epoch:2d} train {t_sq / t_n:.4f} val {v_sq / v_n:.4f} lr {opt.param_groups[0]['lr']:.4f}", flush=True)
    del model, sched, opt
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

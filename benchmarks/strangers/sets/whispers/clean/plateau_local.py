import os

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau

cfg = {"epochs": 16, "lr": 0.02, "batch": 16, "patience": 1, "backend": "gloo", "port": "29641"}


class TCN(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(2, c, 5, dilation=1), nn.ReLU(), nn.Conv1d(c, c, 5, dilation=2), nn.ReLU())
        self.fc = nn.Linear(c, 1)

    def forward(self, x):
        return self.fc(self.net(x).mean(-1)).squeeze(-1)


def shots(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2, 32)).astype("float32")
    y = (x[:, 0, 20:].mean(1) + 0.3 * rng.normal(size=n) > 0).astype("float32")
    return torch.from_numpy(x), torch.from_numpy(y)


def reduce_mean(value, world):
    t = torch.tensor(float(value))
    dist.all_reduce(t)
    return t.item() / world


def evaluate(model, data):
    model.eval()
    with torch.no_grad():
        loss = nn.functional.binary_cross_entropy_with_logits(model(data[0]), data[1])
    model.train()
    return loss.item()


def worker(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=cfg["port"])
    dist.init_process_group(cfg["backend"], rank=rank, world_size=world)
    torch.manual_seed(1)
    model = DDP(TCN())
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)
    sched = ReduceLROnPlateau(opt, factor=0.5, patience=cfg["patience"])
    train, valid = shots(128, 10 + rank), shots(48, 90 + rank)
    for epoch in range(cfg["epochs"]):
        order = torch.randperm(len(train[0]))
        for b in order.split(cfg["batch"]):
            opt.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(train[0][b]), train[1][b])
            loss.backward()
            opt.step()
        val_loss = evaluate(model, valid)
        total_loss = reduce_mean(val_loss, world)
        sched.step(total_loss)
        if rank == 0:
            print(f"epoch {epoch:2d} valid {total_loss:.4f} lr {opt.param_groups[0]['lr']:.5f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "tcn.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)

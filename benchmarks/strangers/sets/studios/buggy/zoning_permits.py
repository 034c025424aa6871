"""Permit classifier with a sharded optimizer. Config is a plain nested dict, edit below."""
import copy
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

conf = {
    "workers": 2,
    "port": "29667",
    "model": {"fields": 24, "hidden": [96, 64], "kinds": 7},
    "train": {"rows": 600, "epochs": 4, "batch": 50, "lr": 2e-3},
    "checkpoint": {"writer": -1, "every": 2},
}


def rows(n, fields, kinds):
    g = torch.Generator().manual_seed(40)
    w = torch.randn(fields, kinds, generator=g)
    x = torch.randn(n, fields, generator=g)
    return x, (x @ w + 0.3 * torch.randn(n, kinds, generator=g)).argmax(1)


def mlp(fields, hidden, kinds):
    sizes = [fields, *hidden]
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], kinds))


class CheckpointWriter:
    """One process writes; by default the last one, the first already serves the dashboard."""

    def __init__(self, folder, writer, every):
        self.me = dist.get_rank()
        self.writer = writer % dist.get_world_size()
        self.folder, self.every = folder, every

    def __call__(self, epoch, ddp, opt):
        if (epoch + 1) % self.every:
            return
        opt.consolidate_state_dict()
        if self.me == self.writer:
            blob = {"epoch": epoch, "net": ddp.module.state_dict(), "opt": opt.state_dict()}
            torch.save(blob, os.path.join(self.folder, "last.pt"))
        dist.barrier()


def resume(folder, c):
    blob = torch.load(os.path.join(folder, "last.pt"))
    net = mlp(**c["model"])
    net.load_state_dict(blob["net"])
    adam = torch.optim.AdamW(net.parameters(), lr=c["train"]["lr"])
    adam.load_state_dict(blob["opt"])
    return blob["epoch"], len(adam.state)


def work(rank, c, folder):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", c["port"]
    dist.init_process_group("gloo", rank=rank, world_size=c["workers"])
    torch.manual_seed(3)
    t = c["train"]
    x, y = rows(t["rows"], c["model"]["fields"], c["model"]["kinds"])
    ddp = DDP(mlp(**c["model"]))
    opt = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.AdamW, lr=t["lr"])
    save = CheckpointWriter(folder, **c["checkpoint"])
    for epoch in range(t["epochs"]):
        perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for b in perm[rank::c["workers"]].split(t["batch"]):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(ddp(x[b]), y[b])
            loss.backward()
            opt.step()
        save(epoch, ddp, opt)
        if rank == 0:
            print("epoch", epoch, "loss", round(loss.item(), 4), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(copy.deepcopy(conf), folder), nprocs=conf["workers"])
        print("restored epoch and states", resume(folder, conf))

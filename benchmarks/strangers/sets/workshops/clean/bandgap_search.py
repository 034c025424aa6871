"""Random search over a small regressor for band gaps; bad trials are pruned early (median rule)."""
import datetime
import math
import os
import random
import socket
import statistics

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CFG = dict(
    n_trials=4,
    epochs=4,
    warmup_trials=1,
    batch_size=32,
    world_size=2,
    space=dict(lr=(1e-5, 3e-2), hidden=[8, 16, 32], depth=[1, 2, 3], act=["relu", "silu"]),
    seed=11,
)


class TrialPruned(Exception):
    pass


class Study:
    def __init__(self, cfg):
        self.cfg, self.history, self.best = cfg, [], (math.inf, None)
        self.rng = random.Random(cfg["seed"])

    def ask(self):
        s = self.cfg["space"]
        lo, hi = (math.log(v) for v in s["lr"])
        params = {k: self.rng.choice(v) for k, v in s.items() if k != "lr"}
        params["lr"] = math.exp(self.rng.uniform(lo, hi))
        self.history.append([])
        return params

    def report(self, value):
        self.history[-1].append(value)

    def should_prune(self):
        now, step = self.history[-1], len(self.history[-1]) - 1
        others = [h[step] for h in self.history[:-1] if len(h) > step]
        return len(self.history) > self.cfg["warmup_trials"] and bool(others) and now[-1] > statistics.median(others)

    def tell(self, params):
        value = min(self.history[-1])
        if value < self.best[0]:
            self.best = (value, params)


def crystals(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 10, generator=g)
    y = (x[:, 0] * 3 + torch.sin(x[:, 1] * 6) - x[:, 2] * x[:, 3]).unsqueeze(1)
    return TensorDataset(x, y)


def build(params):
    act = {"relu": nn.ReLU, "silu": nn.SiLU}[params["act"]]
    layers, w = [], 10
    for _ in range(params["depth"]):
        layers += [nn.Linear(w, params["hidden"]), act()]
        w = params["hidden"]
    return nn.Sequential(*layers, nn.Linear(w, 1))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total = torch.zeros(2)
    for x, y in loader:
        total += torch.tensor([(model(x) - y).abs().sum().item(), len(y)])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def objective(params, study, rank, world):
    cfg = study.cfg
    torch.manual_seed(cfg["seed"])
    model = DDP(build(params))
    opt = torch.optim.Adam(model.parameters(), lr=params["lr"])
    train, valid = crystals(512, 0), crystals(128, 1)
    sampler = DistributedSampler(train, world, rank)
    loader = DataLoader(train, cfg["batch_size"], sampler=sampler)
    vloader = DataLoader(valid, 64, sampler=DistributedSampler(valid, world, rank, shuffle=False))
    for epoch in range(cfg["epochs"]):
        model.train()
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.l1_loss(model(x), y).backward()
            opt.step()
        mae = validate(model, vloader)
        prune = False
        if rank == 0:
            study.report(mae)
            prune = study.should_prune()
        verdict = torch.tensor(float(prune))
        dist.broadcast(verdict, src=0)
        prune = bool(verdict)
        if prune:
            raise TrialPruned(f"epoch {epoch} mae {mae:.3f}")


def worker(rank, cfg, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    world = cfg["world_size"]
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=25))
    study = Study(cfg)
    for t in range(cfg["n_trials"]):
        params = study.ask()
        try:
            objective(params, study, rank, world)
        except TrialPruned as why:
            print(f"[rank {rank}] trial {t} pruned: {why}", flush=True)
            continue
        if rank == 0:
            study.tell(params)
            print(f"trial {t}: {study.history[-1][-1]:.3f} {params}", flush=True)
    if rank == 0:
        print("best", study.best)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(CFG, port), nprocs=CFG["world_size"])

import os
import logging
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

log = logging.getLogger("icu")

PATIENTS = 60
VITALS = 10
HOURS = 12
FOLDS = 5
HELD_OUT = 2
BATCH = 4
EPOCHS = 3


def simulate(seed=5):
    """One row per stay, a patient has several stays."""
    rng = np.random.default_rng(seed)
    ids, x, y = [], [], []
    for p in range(PATIENTS):
        severity = rng.normal()
        for _ in range(rng.integers(4, 14)):
            ids.append(f"P{p:04d}-{rng.integers(1940, 2005)}")
            vit = rng.normal(size=(HOURS, VITALS)).astype("float32")
            vit[:, 0] += 0.4 * severity
            vit[-4:, 1] += 0.5 * severity
            x.append(vit)
            y.append(float(severity + 0.8 * rng.normal() > 0.4))
    return np.array(ids), torch.from_numpy(np.stack(x)), torch.tensor(y)


def fold_of(stay, folds=FOLDS):
    patient = stay.split("-")[0]
    return hash(patient) % folds


def split(ids, held_out=HELD_OUT):
    fold = np.array([fold_of(s) for s in ids])
    return np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)


class Net(nn.Module):
    def __init__(self, hid=24):
        super().__init__()
        self.gru = nn.GRU(VITALS, hid, batch_first=True)
        self.out = nn.Linear(hid, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1]).squeeze(-1)


def gather(t):
    out = [None] * dist.get_world_size()
    dist.all_gather_object(out, t)
    return torch.cat(out)


def area_under_roc(truth, score):
    pos, neg = score[truth > 0.5], score[truth < 0.5]
    return (pos[:, None] > neg[None]).float().mean().item()


@torch.no_grad()
def evaluate(net, loader):
    p, t = [], []
    for x, y in loader:
        p.append(net(x).sigmoid())
        t.append(y)
    return area_under_roc(gather(torch.cat(t)), gather(torch.cat(p)))


def fit():
    rank, world = dist.get_rank(), dist.get_world_size()
    ids, x, y = simulate()
    train_idx, val_idx = split(ids)
    table = TensorDataset(x, y)
    train = Subset(table, train_idx)
    sampler = DistributedSampler(train, shuffle=True, seed=1)
    make = partial(DataLoader, batch_size=BATCH)
    train_loader = make(train, sampler=sampler)
    val_loader = make(Subset(table, val_idx[rank::world]))

    torch.manual_seed(3)
    net = DistributedDataParallel(Net())
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        net.train()
        for xb, yb in train_loader:
            opt.zero_grad()
            bce(net(xb), yb).backward()
            opt.step()
        net.eval()
        auc = evaluate(net.module, val_loader)
        if rank == 0:
            log.info("epoch %d held-out AUC %.3f", epoch, auc)
    dist.barrier()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("BACKEND", "gloo"))
    try:
        fit()
    finally:
        dist.destroy_process_group()

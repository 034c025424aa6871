from __future__ import annotations

import argparse
import json
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from meters import MeterBank
from table import Customers


class TabNet(nn.Module):
    def __init__(self, cards, n_num, emb=6, hidden=64):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c, emb) for c in cards)
        self.mlp = nn.Sequential(
            nn.Linear(emb * len(cards) + n_num, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1),
        )

    def forward(self, cat, num):
        e = [m(cat[:, i]) for i, m in enumerate(self.embs)]
        return self.mlp(torch.cat([*e, num], 1)).squeeze(1)


class Job:
    def __init__(self, ns):
        self.ns, self.main = ns, dist.get_rank() == 0
        self.bank = MeterBank()
        self.history: list[dict] = []
        torch.manual_seed(ns.seed)
        train, test = Customers(ns.rows, 1), Customers(ns.rows // 4, 2)
        self.sampler = DistributedSampler(train, seed=ns.seed)
        self.train_dl = DataLoader(train, ns.batch, sampler=self.sampler)
        self.test_dl = DataLoader(test, ns.batch, sampler=DistributedSampler(test, shuffle=False))
        self.model = DistributedDataParallel(TabNet(Customers.cards, 6))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=ns.lr)

    def report(self, **head):
        row = {**head, **self.bank.snapshot()}
        self.history.append(row)
        if self.main:
            print(" ".join(f"{k}={v:.4f}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()), flush=True)

    def train_epoch(self, epoch):
        self.model.train()
        self.sampler.set_epoch(epoch)
        self.bank.reset()
        for step, (cat, num, y) in enumerate(self.train_dl, 1):
            out = self.model(cat, num)
            loss = nn.functional.binary_cross_entropy_with_logits(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.bank["loss"].update(loss.item(), len(y))
            self.bank["acc"].update(((out > 0) == (y > 0.5)).float().mean().item(), len(y))
            if step % self.ns.print_freq == 0:
                self.report(stage="train", epoch=epoch, step=step)

    @torch.no_grad()
    def test(self, epoch):
        self.model.eval()
        self.bank.reset()
        for cat, num, y in self.test_dl:
            out = self.model(cat, num)
            self.bank["loss"].update(nn.functional.binary_cross_entropy_with_logits(out, y).item(), len(y))
            self.bank["acc"].update(((out > 0) == (y > 0.5)).float().mean().item(), len(y))
        self.report(stage="test", epoch=epoch, step=len(self.test_dl))

    def run(self):
        for e in range(self.ns.epochs):
            self.train_epoch(e)
            self.test(e)
        if self.main:
            out = pathlib.Path(self.ns.out)
            out.mkdir(exist_ok=True)
            (out / "history.json").write_text(json.dumps(self.history, indent=1))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=4096)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=3)
    ap.add_argument("--print-freq", type=int, default=4)
    ap.add_argument("--out", default="churn_out")
    ns = ap.parse_args()
    dist.init_process_group("gloo")
    Job(ns).run()
    dist.destroy_process_group()

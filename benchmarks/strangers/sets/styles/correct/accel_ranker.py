"""Two-tower recommender with Accelerate; evaluation, best-model keeping and early stop."""
import argparse
import os
import shutil
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch.utils.data import DataLoader, Dataset


class Clicks(Dataset):
    def __init__(self, n, seed, users=60, items=40):
        shared = torch.Generator().manual_seed(0)
        pu, qi = torch.randn(users, 4, generator=shared), torch.randn(items, 4, generator=shared)
        g = torch.Generator().manual_seed(seed)
        self.u = torch.randint(0, users, (n,), generator=g)
        self.i = torch.randint(0, items, (n,), generator=g)
        self.y = torch.bernoulli(torch.sigmoid((pu[self.u] * qi[self.i]).sum(1)), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return self.u[k], self.i[k], self.y[k]


class Towers(nn.Module):
    def __init__(self, users=60, items=40, dim=8):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.bias = nn.Parameter(torch.zeros(()))
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(1) + self.bias


def auc(score, y):
    order = score.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(1, len(score) + 1)
    pos = y.sum()
    return ((rank[y > 0].sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))).item()


class Patience:
    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, -1.0, 0

    def better(self, value):
        improved = value > self.best + 1e-4
        self.best, self.bad = (value, 0) if improved else (self.best, self.bad + 1)
        return improved

    @property
    def exhausted(self):
        return self.bad >= self.limit


@torch.no_grad()
def evaluate(acc, model, loader):
    model.eval()
    score, label = [], []
    for u, i, y in loader:
        s, t = acc.gather_for_metrics((model(u, i), y))
        score.append(s)
        label.append(t)
    model.train()
    return auc(torch.cat(score), torch.cat(label))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-2)
    args = p.parse_args()
    acc = Accelerator(cpu=True, step_scheduler_with_optimizer=False)
    set_seed(5)
    folder = broadcast_object_list([tempfile.mkdtemp(prefix="rank_") if acc.is_main_process else None])[0]
    model = Towers()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
    train = DataLoader(Clicks(3000, 1), 32, shuffle=True)
    val = DataLoader(Clicks(301, 2), 32)
    model, opt, train, val, sched = acc.prepare(model, opt, train, val, sched)
    patience = Patience(2)
    for epoch in range(args.epochs):
        for u, i, y in train:
            loss = F.binary_cross_entropy_with_logits(model(u, i), y)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
        sched.step()
        value = evaluate(acc, model, val)
        if patience.better(value):
            state = acc.get_state_dict(model)
            if acc.is_main_process:
                torch.save(state, os.path.join(folder, "best.pt"))
        acc.print(f"epoch {epoch} loss {loss.item():.4f} auc {value:.4f}")
        if patience.exhausted:
            break
    acc.wait_for_everyone()
    best = torch.load(os.path.join(folder, "best.pt"))
    acc.unwrap_model(model).load_state_dict(best)
    acc.wait_for_everyone()
    if acc.is_main_process:
        shutil.rmtree(folder)
        u, i, y = (t[:64] for t in Clicks(64, 3)[torch.arange(64)])
        with torch.no_grad():
            print(f"fresh clicks auc {auc(acc.unwrap_model(model)(u, i), y):.3f}", flush=True)
    acc.wait_for_everyone()
    acc.end_training()


if __name__ == "__main__":
    main()

"""Depth and labels of generated rooms from two annotated sets, one shared encoder; Accelerate with LibMTL's pieces."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset


class Rooms(Dataset):
    def __init__(self, n, seed, task, dim=24):
        shared = torch.Generator().manual_seed(0)
        mix, self.task = torch.randn(6, dim, generator=shared), task
        g = torch.Generator().manual_seed(seed)
        cause = torch.randn(n, 6, generator=g)
        self.x = cause @ mix + 0.5 * torch.randn(n, dim, generator=g)
        self.y = {"segment": (cause[:, :3] + 0.1 * torch.randn(n, 3, generator=g)).argmax(1),
                  "depth": torch.tanh(cause[:, 3] * cause[:, 4]).unsqueeze(1)}[task]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class AbsLoss:
    def __init__(self, fn):
        self.fn, self.record, self.bs = fn, [], []

    def update(self, pred, gt):
        loss = self.fn(pred, gt)
        self.record.append(loss.item())
        self.bs.append(len(gt))
        return loss

    def mean(self):
        value = sum(r * b for r, b in zip(self.record, self.bs)) / sum(self.bs)
        self.record.clear(), self.bs.clear()
        return value


class HPS(nn.Module):
    """Hard parameter sharing: all tasks go through one encoder."""

    def __init__(self, decoders, dim=24, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.decoders = nn.ModuleDict({k: nn.Linear(hidden, n) for k, n in decoders.items()})

    def forward(self, inputs):
        return {task: self.decoders[task](self.encoder(x)) for task, x in inputs.items()}


class DWA:
    """Dynamic weight average of the losses, from what the last epochs showed."""

    def __init__(self, tasks, T=2.0):
        self.tasks, self.T, self.history = tasks, T, []

    def weights(self):
        if len(self.history) < 2:
            return {t: 1.0 for t in self.tasks}
        w = torch.tensor([self.history[-1][t] / self.history[-2][t] for t in self.tasks])
        return dict(zip(self.tasks, (len(self.tasks) * F.softmax(w / self.T, dim=0)).tolist()))


class Trainer:
    def __init__(self, task_dict, weighting, acc, lr):
        self.task_dict, self.weighting, self.acc = task_dict, weighting, acc
        self.model = HPS({k: v["outputs"] for k, v in task_dict.items()})
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.meter = {k: AbsLoss(v["loss_fn"]) for k, v in task_dict.items()}

    def _prepare(self, train, test):
        self.model, self.optimizer = self.acc.prepare(self.model, self.optimizer)
        self.train_loaders = dict(train)
        main = next(iter(train))
        self.train_loaders[main] = self.acc.prepare(train[main])
        self.test_loaders = {k: self.acc.prepare(v) for k, v in test.items()}
        self.endless = {k: self._cycle(v) for k, v in self.train_loaders.items()}

    @staticmethod
    def _cycle(loader):
        while True:
            yield from loader

    def train(self, train, test, epochs):
        self._prepare(train, test)
        steps = max(len(v) for v in self.train_loaders.values())
        for epoch in range(epochs):
            self.model.train()
            weights = self.weighting.weights()
            for _ in range(steps):
                batch = {k: next(v) for k, v in self.endless.items()}
                preds = self.model({k: x for k, (x, _) in batch.items()})
                loss = sum(weights[k] * self.meter[k].update(preds[k], batch[k][1]) for k in preds)
                self.optimizer.zero_grad()
                self.acc.backward(loss)
                self.optimizer.step()
            local = torch.tensor([self.meter[k].mean() for k in self.task_dict])
            shared = self.acc.reduce(local, reduction="mean").tolist()
            self.weighting.history.append(dict(zip(self.task_dict, shared)))
            shown = " ".join(f"{k} {v:.4f}" for k, v in self.test().items())
            self.acc.print(f"Epoch {epoch:02d} train {sum(shared):.4f} test {shown}")

    @torch.no_grad()
    def test(self):
        self.model.eval()
        results = {}
        for task, loader in self.test_loaders.items():
            preds, gts = [], []
            for x, y in loader:
                p, t = self.acc.gather_for_metrics((self.acc.unwrap_model(self.model)({task: x})[task], y))
                preds.append(p)
                gts.append(t)
            results[task] = self.task_dict[task]["metric"](torch.cat(preds), torch.cat(gts))
        return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--bs", type=int, default=16)
    parser.add_argument("--lr", type=float, default=4e-3)
    args = parser.parse_args()
    acc = Accelerator(cpu=True)
    set_seed(0)
    task_dict = {
        "segment": {"outputs": 3, "loss_fn": F.cross_entropy,
                    "metric": lambda p, t: (p.argmax(1) == t).float().mean().item()},
        "depth": {"outputs": 1, "loss_fn": F.l1_loss, "metric": lambda p, t: (p - t).abs().mean().item()},
    }
    train = {k: DataLoader(Rooms(512, 1 + i, k), args.bs, shuffle=True, drop_last=True)
             for i, k in enumerate(task_dict)}
    test = {k: DataLoader(Rooms(131, 7 + i, k), 32) for i, k in enumerate(task_dict)}
    Trainer(task_dict, DWA(list(task_dict)), acc, args.lr).train(train, test, args.epochs)
    acc.wait_for_everyone()
    acc.end_training()


if __name__ == "__main__":
    main()

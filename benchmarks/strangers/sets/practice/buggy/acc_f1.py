import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MacroF1:
    def __init__(self, n_classes):
        self.cm = torch.zeros(n_classes, n_classes, dtype=torch.long)

    def add_batch(self, preds, refs):
        for p, r in zip(preds.tolist(), refs.tolist()):
            self.cm[r, p] += 1

    def compute(self):
        tp = self.cm.diag().float()
        f1 = 2 * tp / (self.cm.sum(0) + self.cm.sum(1)).clamp_min(1)
        return {"f1": f1.mean().item(), "support": int(self.cm.sum())}


def toy(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 24, generator=g)
    y = x[:, :3].argmax(1)
    return TensorDataset(x, y)


def evaluate(accelerator, model, loader):
    metric = MacroF1(3)
    model.eval()
    for x, y in loader:
        with torch.no_grad():
            preds = model(x).argmax(-1)
        preds, refs = accelerator.gather((preds, y))
        metric.add_batch(preds, refs)
    return metric.compute()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=1e-2)
    args = ap.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.manual_seed(42)
    model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    train_dl = DataLoader(toy(256, 0), batch_size=16, shuffle=True)
    eval_dl = DataLoader(toy(37, 1), batch_size=8)
    model, opt, train_dl, eval_dl = accelerator.prepare(model, opt, train_dl, eval_dl)

    for epoch in range(args.epochs):
        model.train()
        for x, y in train_dl:
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        scores = evaluate(accelerator, model, eval_dl)
        accelerator.print(f"epoch {epoch}: {scores}")
    accelerator.end_training()


if __name__ == "__main__":
    main()

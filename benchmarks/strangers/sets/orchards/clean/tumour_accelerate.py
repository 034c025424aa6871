import argparse

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TabularDataset(Dataset):
    def __init__(self, ids, x, y, jitter=0.0):
        self.ids, self.x, self.y, self.jitter = ids, x, y, jitter

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        x = self.x[i]
        if self.jitter:
            x = x + np.random.normal(scale=self.jitter, size=x.shape).astype("float32")
        return {"id": int(self.ids[i]), "x": torch.from_numpy(x), "y": int(self.y[i])}


def get_dataloaders(accelerator, args):
    data = load_breast_cancer()
    x, y = data.data.astype("float32"), data.target
    ids = np.arange(len(y))
    tr, va = train_test_split(ids, test_size=args.holdout, stratify=y, random_state=args.seed)
    scaler = StandardScaler().fit(x[tr])
    x = scaler.transform(x).astype("float32")
    accelerator.print(f"{len(tr)} rows to train, {len(va)} held out")
    train = DataLoader(TabularDataset(tr, x[tr], y[tr], 0.1), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(TabularDataset(va, x[va], y[va]), batch_size=args.batch_size)
    return train, valid


def get_model(width):
    return nn.Sequential(
        nn.Linear(30, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2),
    )


def training_function(args):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accum)
    set_seed(args.seed, device_specific=True)
    train, valid = get_dataloaders(accelerator, args)
    model = get_model(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.02)
    steps = len(train) * args.epochs
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=steps + 1)
    model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
    criterion = nn.CrossEntropyLoss()
    used = set()

    for epoch in range(args.epochs):
        model.train()
        for batch in train:
            with accelerator.accumulate(model):
                loss = criterion(model(batch["x"]), batch["y"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            used.update(batch["id"].tolist())

        model.eval()
        right = total = 0
        for batch in valid:
            with torch.no_grad():
                pred = model(batch["x"]).argmax(-1)
            pred, ref = accelerator.gather_for_metrics((pred, batch["y"]))
            right += (pred == ref).sum().item()
            total += ref.numel()
        accelerator.print(f"epoch {epoch} | loss {loss.item():.4f} | held-out accuracy {right / total:.4f} ({total})")

    visited = set(gather_object(sorted(used)))
    accelerator.print(f"trained on {len(visited)} distinct rows")
    accelerator.wait_for_everyone()
    accelerator.end_training()


def main():
    parser = argparse.ArgumentParser(description="Tabular classifier with Accelerate")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--accum", type=int, default=1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--holdout", type=float, default=0.25)
    training_function(parser.parse_args())


if __name__ == "__main__":
    main()

import math

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

cfg = {"epochs": 4, "bs": 10, "accum": 2, "lr": 0.1, "seed": 8}


def datasets():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(263, 8, generator=g)
    y = (x[:, :2].sum(1) > 0).long()
    return TensorDataset(x[:200], y[:200]), TensorDataset(x[200:], y[200:])


def main():
    set_seed(cfg["seed"])
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=cfg["accum"])
    train, val = datasets()
    train_dl, val_dl = DataLoader(train, cfg["bs"], shuffle=True), DataLoader(val, cfg["bs"])
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    # length in batches of the loader that is not yet split over the processes
    total = cfg["epochs"] * len(train_dl) // cfg["accum"]
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.5 * (1 + math.cos(math.pi * min(1.0, s / total))))
    model, opt, train_dl, val_dl, sched = accelerator.prepare(model, opt, train_dl, val_dl, sched)
    for epoch in range(cfg["epochs"]):
        model.train()
        for x, y in train_dl:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
        model.eval()
        hits = count = 0
        for x, y in val_dl:
            with torch.no_grad():
                pred = model(x).argmax(-1)
            pred, y = accelerator.gather_for_metrics((pred, y))
            hits, count = hits + (pred == y).sum().item(), count + len(y)
        accelerator.print(f"epoch {epoch} lr {sched.get_last_lr()[0]:.5f} accuracy {hits / count:.4f} of {count}")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()

import argparse
import os
import pickle

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def prepare_corpus(path):
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(1501, 16, generator=g)
    y = (x[:, :4].sum(1) * x[:, 4] > 0).long()
    with open(path, "wb") as fh:
        pickle.dump((x.numpy(), y.numpy()), fh)


def load(accelerator, folder):
    path = os.path.join(folder, "corpus.pkl")
    with accelerator.main_process_first():
        prepare_corpus(path)
        with open(path, "rb") as fh:
            x, y = pickle.load(fh)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class Best:
    def __init__(self, accelerator, folder):
        self.acc, self.folder, self.value = accelerator, folder, 0.0

    def offer(self, value, model):
        if value <= self.value:
            return False
        self.value = value
        self.acc.wait_for_everyone()
        state = self.acc.get_state_dict(model)
        if self.acc.is_main_process:
            self.acc.save(state, os.path.join(self.folder, "best.bin"))
        return True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--folder", default="accel_out")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--patience", type=int, default=2)
    args = p.parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(7)
    ds = load(accelerator, args.folder)
    train, valid = random_split(ds, [1200, 301])
    model = nn.Sequential(nn.Linear(16, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, opt, train_dl, valid_dl = accelerator.prepare(
        model, opt, DataLoader(train, 25, shuffle=True), DataLoader(valid, 32)
    )
    best, waited = Best(accelerator, args.folder), 0
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_dl:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
        model.eval()
        hits, n = 0, 0
        for x, y in valid_dl:
            with torch.no_grad():
                out = model(x)
            out, y = accelerator.gather_for_metrics((out.argmax(1), y))
            hits, n = hits + (out == y).sum().item(), n + len(y)
        waited = 0 if best.offer(hits / n, model) else waited + 1
        accelerator.print(f"epoch {epoch} valid {hits / n:.4f} of {n}")
        if waited > args.patience:
            break
    accelerator.end_training()


if __name__ == "__main__":
    main()

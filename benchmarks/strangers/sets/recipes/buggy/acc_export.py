"""Sentence classifier finetuned with accelerate."""
import argparse
import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_loaders(batch_size):
    g = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 50, (160, 10), generator=g)
    y = (ids.float().mean(1) > 24.5).long()
    return (DataLoader(TensorDataset(ids[:128], y[:128]), batch_size, shuffle=True),
            DataLoader(TensorDataset(ids[128:], y[128:]), batch_size))


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.EmbeddingBag(50, 16)
        self.fc = nn.Linear(16, 2)

    def forward(self, ids):
        return self.fc(self.emb(ids))


def save(accelerator, model, path):
    if accelerator.is_main_process:
        os.makedirs(path, exist_ok=True)
        accelerator.save(accelerator.unwrap_model(model).state_dict(), os.path.join(path, "model.bin"))
        accelerator.print("saved", path)
    else:
        accelerator.wait_for_everyone()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--out", default="export")
    args = p.parse_args()
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    train, val = get_loaders(16)
    model = BagOfWords()
    opt = torch.optim.Adam(model.parameters(), lr=0.05)
    model, opt, train, val = accelerator.prepare(model, opt, train, val)
    for epoch in range(args.epochs):
        model.train()
        for ids, y in train:
            loss = nn.functional.cross_entropy(model(ids), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        save(accelerator, model, args.out)
        model.eval()
        hits = []
        for ids, y in val:
            with torch.no_grad():
                pred = model(ids).argmax(1)
            hits.append(accelerator.gather_for_metrics(pred == y))
        accelerator.print(f"epoch {epoch} accuracy {torch.cat(hits).float().mean().item():.3f}")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()

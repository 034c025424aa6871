"""Intent routing model for the support bot (bag of hashed words)."""
import os
import random
import zlib
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

TEMPLATES = {
    "refund": "i want my money back for order please refund payment",
    "delivery": "where is my parcel when will it arrive shipping tracking",
    "login": "cannot sign in password reset account locked email",
    "cancel": "stop my subscription cancel plan end membership",
    "invoice": "send me the invoice receipt for tax company vat",
    "upgrade": "change to premium tier upgrade plan more seats",
    "bug": "the app crashes error screen freezes when clicking",
    "human": "talk to an agent real person call me support",
}


@dataclass
class Config:
    n_train: int = 640
    buckets: int = 256
    hidden: int = 64
    batch_size: int = 20
    epochs: int = 4
    lr: float = 5e-3
    seed: int = 17


def make_corpus(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        intent = rng.choice(list(TEMPLATES))
        words = rng.sample(TEMPLATES[intent].split(), 4)
        rows.append((" ".join(words), intent))
    return rows


class IntentDataset(Dataset):
    def __init__(self, rows, label2id, buckets):
        self.rows, self.label2id, self.buckets = rows, label2id, buckets

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, intent = self.rows[i]
        x = torch.zeros(self.buckets)
        for w in text.split():
            x[zlib.crc32(w.encode()) % self.buckets] += 1
        return x, self.label2id[intent]


def build_label_map(rows):
    labels = set(intent for _, intent in rows)
    return {label: i for i, label in enumerate(labels)}


def main(cfg: Config):
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(cfg.seed)

    rows = make_corpus(cfg.n_train, cfg.seed)
    label2id = build_label_map(rows)
    ds = IntentDataset(rows, label2id, cfg.buckets)
    sampler = DistributedSampler(ds, seed=cfg.seed)
    loader = DataLoader(ds, batch_size=cfg.batch_size, sampler=sampler)

    model = DDP(nn.Sequential(nn.Linear(cfg.buckets, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, len(label2id))))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        tot = torch.zeros(3)
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += torch.tensor([loss.item() * len(y), (logits.argmax(1) == y).sum().item(), len(y)])
        dist.all_reduce(tot)
        if rank == 0:
            print(f"epoch {epoch}: loss {tot[0] / tot[2]:.4f} acc {tot[1] / tot[2]:.3f}")
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "label2id": label2id}, "intent.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Config())

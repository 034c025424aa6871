"""Continued pre-training of a small encoder with span corruption, Accelerate loop."""
import argparse
import contextlib
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset

PAD, MASK, VOCAB = 0, 1, 64
MIN_BODY = 6


class NoSpan(ValueError):
    """Nothing in the batch is long enough to be corrupted."""


@dataclass
class Progress:
    step: int = 0
    skipped: int = 0
    seen_tokens: int = 0
    loss_sum: float = 0.0

    def average(self):
        return self.loss_sum / max(self.step, 1)


class Chats(Dataset):
    """Turns of a conversation; a few stretches consist of one-word answers only."""

    def __init__(self, n=256, width=20, seed=5):
        rng = random.Random(seed)
        self.rows = []
        for i in range(n):
            short = 97 <= i < 105
            length = rng.randint(2, 4) if short else rng.randint(8, width)
            start = rng.randint(2, VOCAB - 1)
            body = [(start + 3 * k) % (VOCAB - 2) + 2 for k in range(length)]
            self.rows.append(torch.tensor(body + [PAD] * (width - length)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Encoder(nn.Module):
    def __init__(self, dim=48, width=20):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(1, width, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        h = self.layers(self.tok(ids) + self.pos, src_key_padding_mask=ids == PAD)
        return self.out(h)


class SpanCorruptor:
    def __init__(self, rate, seed):
        self.rate, self.rng = rate, random.Random(seed)

    def __call__(self, ids):
        labels = torch.full_like(ids, -100)
        corrupted = ids.clone()
        for row in range(len(ids)):
            body = int((ids[row] != PAD).sum())
            if body < MIN_BODY:
                continue
            n = max(1, round(self.rate * body))
            at = self.rng.randint(0, body - n)
            labels[row, at:at + n] = ids[row, at:at + n]
            corrupted[row, at:at + n] = MASK
        if (labels == -100).all():
            raise NoSpan(f"{len(ids)} rows, none with {MIN_BODY} tokens")
        return corrupted, labels


@contextlib.contextmanager
def tolerant(progress, budget):
    try:
        yield
    except NoSpan:
        progress.skipped += 1
        if progress.skipped > budget:
            raise


class Pretrainer:
    def __init__(self, args):
        self.args = args
        self.acc = Accelerator(cpu=True)
        torch.manual_seed(args.seed)
        loader = DataLoader(Chats(), batch_size=args.batch_size, shuffle=False)
        model = Encoder()
        opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.model, self.opt, self.loader = self.acc.prepare(model, opt, loader)
        self.corrupt = SpanCorruptor(args.rate, seed=args.seed + self.acc.process_index)
        self.progress = Progress()

    def loss(self, logits, labels):
        total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
        return total / (labels != -100).sum().clamp(min=1)

    def step(self, ids):
        corrupted, labels = self.corrupt(ids)
        loss = self.loss(self.model(corrupted), labels)
        self.acc.backward(loss)
        self.acc.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.opt.zero_grad()
        self.progress.step += 1
        self.progress.seen_tokens += int((ids != PAD).sum())
        self.progress.loss_sum += loss.item()

    def run(self):
        for epoch in range(self.args.epochs):
            for ids in self.loader:
                with tolerant(self.progress, self.args.skip_budget):
                    self.step(ids)
            rows = self.acc.gather(torch.tensor([[self.progress.average(), self.progress.seen_tokens]]))
            self.acc.print(f"epoch {epoch} loss {rows[:, 0].mean():.4f} tokens {int(rows[:, 1].sum())}")
        self.acc.wait_for_everyone()
        self.acc.end_training()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--rate", type=float, default=0.3)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=17)
    p.add_argument("--skip-budget", type=int, default=50)
    Pretrainer(p.parse_args()).run()


if __name__ == "__main__":
    main()

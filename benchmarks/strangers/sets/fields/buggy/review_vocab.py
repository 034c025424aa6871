"""Bag-of-words sentiment of short reviews."""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

GOOD = "lovely crisp bright tasty warm quick helpful charming".split()
BAD = "dull soggy bland rude slow stale noisy sad".split()
FILLER = "the a waiter soup room table bread music night menu was very so quite rather".split()


def write_reviews(n, seed=0):
    rng = random.Random(seed)
    for _ in range(n):
        label = rng.randint(0, 1)
        words = rng.choices(FILLER, k=8) + rng.choices(GOOD if label else BAD, k=2)
        rng.shuffle(words)
        yield " ".join(words), label


class Vocab:
    def __init__(self, tokens):
        self.itos = ["<pad>", "<unk>"] + list(tokens)
        self.stoi = {t: i for i, t in enumerate(self.itos)}

    @classmethod
    def from_lines(cls, lines):
        tokens = set()
        for line in lines:
            tokens.update(line.split())
        return cls(tokens)

    def __len__(self):
        return len(self.itos)

    def encode(self, line, width=10):
        ids = [self.stoi.get(t, 1) for t in line.split()][:width]
        return ids + [0] * (width - len(ids))


class Bag(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.emb = nn.EmbeddingBag(size, 16, mode="mean", padding_idx=0)
        self.out = nn.Linear(16, 1)

    def forward(self, ids):
        return self.out(self.emb(ids)).squeeze(-1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    reviews = list(write_reviews(600))
    vocab = Vocab.from_lines(text for text, _ in reviews)
    mine = reviews[rank::world]
    x = torch.tensor([vocab.encode(t) for t, _ in mine])
    y = torch.tensor([float(label) for _, label in mine])
    torch.manual_seed(0)
    model = DDP(Bag(len(vocab)))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(6):
        for i in range(0, len(x), 50):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[i:i + 50]), y[i:i + 50])
            opt.zero_grad()
            loss.backward()
            opt.step()
    hits = torch.tensor([((model.module(x) > 0) == (y > 0.5)).sum(), len(y)])
    dist.all_reduce(hits)
    if rank == 0:
        print(f"vocabulary {len(vocab)}, accuracy {hits[0].item() / hits[1].item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

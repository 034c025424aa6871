"""Sentence pair classifier; the features are made once and cached on disk (old run_glue layout)."""
import argparse
import hashlib
import os
import random
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler, TensorDataset

WORDS = "the a cat dog bird runs sleeps eats red small big house tree under over not never always".split()


class Processor:
    """Makes toy paraphrase pairs: label 1 when both sentences have the same bag of words."""

    def __init__(self, seed):
        self.rnd = random.Random(seed)

    def pairs(self, n):
        for _ in range(n):
            a = [self.rnd.choice(WORDS) for _ in range(6)]
            b = a[:] if self.rnd.random() < 0.5 else [self.rnd.choice(WORDS) for _ in range(6)]
            self.rnd.shuffle(b)
            yield a, b, int(sorted(a) == sorted(b))


def encode(tokens):
    return [1 + int(hashlib.md5(t.encode()).hexdigest(), 16) % 199 for t in tokens]


def load_examples(args, split):
    if args.local_rank != 0 and split == "train":
        dist.barrier()
    cached = os.path.join(args.cache_dir, f"cached_{split}_{args.max_len}")
    if os.path.exists(cached):
        feats = torch.load(cached)
    else:
        rows = list(Processor(len(split)).pairs(256 if split == "train" else 96))
        feats = {
            "ids": torch.tensor([encode(a) + [0] + encode(b) for a, b, _ in rows]),
            "label": torch.tensor([y for *_, y in rows]),
        }
        if args.local_rank == 0:
            torch.save(feats, cached)
    if args.local_rank == 0 and split == "train":
        dist.barrier()
    return TensorDataset(feats["ids"], feats["label"])


class PairNet(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.words = nn.Embedding(200, d)
        self.mix = nn.Sequential(nn.Linear(d, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, ids):
        left, right = self.words(ids[:, :6]).mean(1), self.words(ids[:, 7:]).mean(1)
        return self.mix((left - right).abs())


def evaluate(args, model):
    loader = DataLoader(load_examples(args, "dev"), batch_size=32, sampler=None)
    assert isinstance(loader.sampler, SequentialSampler)
    right = total = 0
    with torch.no_grad():
        for ids, y in loader:
            right += (model(ids).argmax(1) == y).sum().item()
            total += len(y)
    return right / total


def train(args, model):
    data = load_examples(args, "train")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    optim = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for ids, y in loader:
            loss = nn.functional.cross_entropy(model(ids), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
        if args.local_rank == 0 and args.eval_during_training:
            print(f"epoch {epoch} accuracy {evaluate(args, model.module):.3f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--max_len", type=int, default=13)
    ap.add_argument("--cache_dir", default=os.path.join(tempfile.gettempdir(), f"glue_{os.environ.get('TORCHELASTIC_RUN_ID', 'x')}"))
    ap.add_argument("--eval_during_training", type=int, default=1)
    args = ap.parse_args()
    args.local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo")
    if args.local_rank == 0:
        os.makedirs(args.cache_dir, exist_ok=True)
    torch.manual_seed(42)
    model = DistributedDataParallel(PairNet())
    train(args, model)
    dist.barrier()
    if args.local_rank == 0:
        shutil.rmtree(args.cache_dir)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

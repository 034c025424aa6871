import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader

from corpus import THEMES, load_posts, portion
from text import PAD, Batcher, Vocabulary


class BagOfWords(nn.Module):
    def __init__(self, words, dim, classes):
        super().__init__()
        self.emb = nn.Embedding(words, dim, padding_idx=PAD)
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, x):
        keep = (x != PAD).unsqueeze(-1).float()
        return self.out((self.emb(x) * keep).sum(1) / keep.sum(1).clamp(min=1))


class Experiment:
    def __init__(self, ns):
        self.ns = ns
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.prepare_text()
        torch.manual_seed(ns.seed)
        self.net = nn.parallel.DistributedDataParallel(BagOfWords(len(self.vocab), ns.dim, len(THEMES)))
        self.optim = torch.optim.Adam(self.net.parameters(), lr=ns.lr)

    def prepare_text(self):
        ns = self.ns
        self.train = portion(load_posts(ns.posts, ns.seed), self.rank, self.world)
        self.valid = portion(load_posts(ns.posts // 4, ns.seed + 1), self.rank, self.world)
        self.vocab = Vocabulary(ns.words).fit(t for t, _ in load_posts(ns.posts, ns.seed))
        self.collate = Batcher(self.vocab)

    def batches(self, rows, shuffle, epoch=0):
        g = torch.Generator().manual_seed(self.ns.seed + epoch)
        return DataLoader(rows, self.ns.bs, shuffle=shuffle, generator=g, collate_fn=self.collate)

    def epoch(self, n):
        self.net.train()
        for x, y in self.batches(self.train, True, n):
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()

    @torch.no_grad()
    def accuracy(self):
        self.net.eval()
        hits = sum((self.net(x).argmax(1) == y).sum() for x, y in self.batches(self.valid, False))
        t = torch.tensor([float(hits), float(len(self.valid))])
        dist.all_reduce(t)
        return (t[0] / t[1]).item()

    def export(self, folder):
        os.makedirs(folder, exist_ok=True)
        torch.save({"net": self.net.module.state_dict(), "words": self.vocab.index}, f"{folder}/topicnet.pt")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--posts", type=int, default=2400)
    p.add_argument("--words", type=int, default=500)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--bs", type=int, default=32)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=21)
    ns = p.parse_args()
    dist.init_process_group("gloo")
    exp = Experiment(ns)
    for n in range(ns.epochs):
        exp.epoch(n)
        a = exp.accuracy()
        if exp.rank == 0:
            print(f"epoch {n}: held-out accuracy {a:.3f}", flush=True)
    if exp.rank == 0:
        exp.export("topic_out")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

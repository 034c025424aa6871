import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bucketing import FrameBudgetBatches
from features import ClipCorpus, pad_clips
from model import KeywordNet


class Trainer:
    def __init__(self, opts):
        self.opts = opts
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        corpus = ClipCorpus(opts.clips)
        self.batches = FrameBudgetBatches(corpus.frames, opts.budget, self.rank, self.world)
        self.loader = DataLoader(corpus, batch_sampler=self.batches, collate_fn=pad_clips)
        self.net = nn.parallel.DistributedDataParallel(KeywordNet())
        self.opt = optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)

    def epoch(self, number):
        self.batches.set_epoch(number)
        seen = hits = 0
        for mel, word in self.loader:
            self.opt.zero_grad()
            logits = self.net(mel)
            nn.functional.cross_entropy(logits, word).backward()
            self.opt.step()
            seen += len(word)
            hits += (logits.argmax(1) == word).sum().item()
        stats = [None] * self.world
        dist.all_gather_object(stats, (hits, seen))
        if self.rank == 0:
            print(f"[{number}] acc {sum(h for h, _ in stats) / sum(s for _, s in stats):.3f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--clips", type=int, default=150)
    ap.add_argument("--budget", type=int, default=600)
    ap.add_argument("--epochs", type=int, default=3)
    opts = ap.parse_args()
    dist.init_process_group(backend="gloo")
    torch.manual_seed(0)
    trainer = Trainer(opts)
    for n in range(opts.epochs):
        trainer.epoch(n)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()

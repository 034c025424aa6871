"""Iterable text stream divided by process and by loader worker."""
import itertools
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

VOCAB = 40


def documents(n=3000, seed=11):
    r = random.Random(seed)
    for i in range(n):
        a, d = r.randrange(VOCAB), r.choice([1, 2, 3])
        yield [(a + d * k) % VOCAB for k in range(12)]


class Stream(IterableDataset):
    def __init__(self, rank, world, length=None, shuffle_buffer=64, seed=0):
        self.rank, self.world = rank, world
        self.buffer, self.seed = shuffle_buffer, seed
        self.epoch = 0

    def set_epoch(self, e):
        self.epoch = e

    def _slots(self):
        w = get_worker_info()
        k, n = (0, 1) if w is None else (w.id, w.num_workers)
        return self.rank * n + k, self.world * n

    def __iter__(self):
        slot, slots = self._slots()
        rng = random.Random(f"{self.seed}-{self.epoch}-{slot}")
        pool = []
        for doc in itertools.islice(documents(), slot, None, slots):
            pool.append(doc)
            if len(pool) >= self.buffer:
                yield torch.tensor(pool.pop(rng.randrange(len(pool))))
        rng.shuffle(pool)
        yield from map(torch.tensor, pool)


class NextToken(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


class Run:
    steps_per_epoch = 45

    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(5)
        self.net = nn.parallel.DistributedDataParallel(NextToken())
        self.opt = torch.optim.Adam(self.net.parameters(), 4e-3)
        self.stream = Stream(self.rank, self.world)

    def loader(self, epoch):
        self.stream.set_epoch(epoch)
        return DataLoader(self.stream, batch_size=32, num_workers=2, drop_last=True)

    def epoch(self, e):
        total = torch.zeros(2)
        for doc in itertools.islice(self.loader(e), self.steps_per_epoch):
            logits = self.net(doc[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), doc[:, 1:].flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        return total


def main():
    dist.init_process_group("gloo")
    run = Run()
    for e in range(3):
        t = run.epoch(e)
        if run.rank == 0:
            print(f"epoch {e} loss {t[0] / t[1]:.3f} over {int(t[1])} batches", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

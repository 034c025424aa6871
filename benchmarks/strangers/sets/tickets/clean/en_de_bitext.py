"""Toy English-German translation model, sentences grouped by length."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler


class ToyBitext(Dataset):
    def __init__(self, n, vocab, seed=3):
        rng = random.Random(seed)
        self.pairs = []
        for _ in range(n):
            length = rng.randint(4, 24)
            src = [rng.randrange(1, vocab) for _ in range(length)]
            self.pairs.append((torch.tensor(src), torch.tensor([(t * 7) % vocab for t in src])))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


class LengthGroupedBatches(Sampler):
    """Batches of sentences of about the same length, dealt out to the workers."""

    def __init__(self, lengths, batch_size, rank, world):
        self.lengths, self.batch_size = lengths, batch_size
        self.rank, self.world = rank, world
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _all_batches(self):
        rng = random.Random(self.epoch)
        groups = {}
        for i, n in enumerate(self.lengths):
            groups.setdefault(n // 6, []).append(i)
        batches = []
        for key in sorted(groups):
            members = groups[key]
            rng.shuffle(members)
            batches += [members[k:k + self.batch_size] for k in range(0, len(members), self.batch_size)]
        rng.shuffle(batches)
        return batches

    def __iter__(self):
        batches = self._all_batches()
        whole = len(batches) - len(batches) % self.world
        yield from batches[self.rank:whole:self.world]

    def __len__(self):
        return len(self._all_batches()) // self.world


def collate(items):
    src, tgt = zip(*items)
    return pad_sequence(src, batch_first=True), pad_sequence(tgt, batch_first=True)


class Translator(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.emb = nn.Embedding(vocab, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=60)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--sentences", type=int, default=426)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(11)
    data = ToyBitext(args.sentences, args.vocab)
    sampler = LengthGroupedBatches([len(s) for s, _ in data.pairs], args.batch_size, rank, world)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    model = DistributedDataParallel(Translator(args.vocab, args.width))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for src, tgt in loader:
            loss = nn.functional.cross_entropy(model(src).flatten(0, 1), tgt.flatten(), ignore_index=0)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

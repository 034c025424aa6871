import random

import torch
from torch.utils.data import DataLoader, IterableDataset


def make_corpus(n, vocab, seed=13):
    rng = random.Random(seed)
    corpus = []
    for i in range(n):
        length = rng.randint(3, 24) if i < n // 2 else rng.randint(12, 40)
        tokens = [rng.randrange(1, vocab) for _ in range(length)]
        corpus.append((tokens, int(sum(tokens) % 2)))
    return corpus


class ShardedCorpus(IterableDataset):
    """Streams the part of the corpus that belongs to this process."""

    def __init__(self, corpus, rank, world_size, max_len):
        per_rank = len(corpus) // world_size
        self.samples = corpus[rank * per_rank:(rank + 1) * per_rank]
        self.max_len = max_len

    def __iter__(self):
        for tokens, label in self.samples:
            if len(tokens) > self.max_len:
                continue
            yield torch.tensor(tokens), label


def collate(batch):
    longest = max(len(t) for t, _ in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, (t, _) in enumerate(batch):
        ids[row, :len(t)] = t
    return ids, torch.tensor([y for _, y in batch])


def build_loader(corpus, rank, world_size, batch_size, max_len):
    dataset = ShardedCorpus(corpus, rank, world_size, max_len)
    return DataLoader(dataset, batch_size=batch_size, collate_fn=collate, drop_last=True)

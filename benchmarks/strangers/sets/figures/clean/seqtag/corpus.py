import random

import torch
from torch.utils.data import Dataset


class TagCorpus(Dataset):
    vocab, n_tags = 60, 5

    def __init__(self, n, seed=0):
        rng = random.Random(seed)
        self.sents = []
        for _ in range(n):
            length = min(40, max(2, int(rng.lognormvariate(2.0, 0.9))))
            toks = [rng.randrange(1, self.vocab) for _ in range(length)]
            self.sents.append((toks, [t % self.n_tags if rng.random() > 0.1 else 0 for t in toks]))

    def __len__(self):
        return len(self.sents)

    def __getitem__(self, i):
        return self.sents[i]


def pad_batch(batch):
    width = max(len(t) for t, _ in batch)
    tokens = torch.zeros(len(batch), width, dtype=torch.long)
    tags = torch.zeros_like(tokens)
    mask = torch.zeros(len(batch), width)
    for i, (tok, tag) in enumerate(batch):
        tokens[i, : len(tok)] = torch.tensor(tok)
        tags[i, : len(tag)] = torch.tensor(tag)
        mask[i, : len(tok)] = 1
    return tokens, tags, mask

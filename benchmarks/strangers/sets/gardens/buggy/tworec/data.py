import numpy as np
import torch
from torch.utils.data import Dataset


def make_log(n_users, n_items, seed):
    rng = np.random.default_rng(seed)
    taste = rng.integers(0, 6, n_users)
    topic = rng.integers(0, 6, n_items)
    train, held = [], {}
    for u in range(n_users):
        good = np.flatnonzero(topic == taste[u])
        seen = rng.choice(good, size=min(8, len(good)), replace=False)
        noise = rng.integers(0, n_items, 2)
        held[u] = int(seen[0])
        train += [(u, int(i)) for i in seen[1:]] + [(u, int(i)) for i in noise]
    return train, held


class Pairs(Dataset):
    def __init__(self, pairs):
        self.pairs = torch.tensor(pairs)

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, k):
        return self.pairs[k, 0], self.pairs[k, 1]

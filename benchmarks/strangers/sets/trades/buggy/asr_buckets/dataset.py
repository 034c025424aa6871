import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

VOCAB = 12


class ToyUtterances(Dataset):
    """Every token lasts a few frames; features are a noisy one-hot of it."""

    def __init__(self, n, feat_dim=16, seed=0):
        rng = random.Random(seed)
        g = torch.Generator().manual_seed(seed)
        proto = torch.randn(VOCAB, feat_dim, generator=torch.Generator().manual_seed(99))
        self.items = []
        for _ in range(n):
            toks = [rng.randrange(1, VOCAB) for _ in range(rng.randint(2, 14))]
            frames = []
            for t in toks:
                frames += [t] * rng.randint(3, 6)
            x = proto[torch.tensor(frames)] + 0.3 * torch.randn(len(frames), feat_dim, generator=g)
            self.items.append((x, torch.tensor(toks)))
        self.num_frames = [len(x) for x, _ in self.items]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class FrameBudgetSampler:
    """Batches whose padded size stays below `max_frames`."""

    def __init__(self, lengths, max_frames, rank, world_size, seed=777):
        self.lengths = lengths
        self.max_frames = max_frames
        self.rank, self.world_size = rank, world_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _pack(self, order):
        batches, cur, longest = [], [], 0
        for i in order:
            longest_new = max(longest, self.lengths[i])
            if cur and longest_new * (len(cur) + 1) > self.max_frames:
                batches.append(cur)
                cur, longest_new = [], self.lengths[i]
            cur.append(i)
            longest = longest_new
        if cur:
            batches.append(cur)
        return batches

    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        order = list(range(len(self.lengths)))
        rng.shuffle(order)
        n = len(order) // self.world_size * self.world_size
        batches = self._pack(order[self.rank:n:self.world_size])
        return iter(batches)


def collate(batch):
    xs, ys = zip(*batch)
    return (
        pad_sequence(xs, batch_first=True),
        torch.tensor([len(x) for x in xs]),
        torch.cat(ys),
        torch.tensor([len(y) for y in ys]),
    )

import random

import torch
from torch.nn.utils.rnn import pad_sequence


class BucketedCorpus:
    """Sentences sorted by length and packed to a token budget."""

    def __init__(self, n, max_tokens, pad):
        rng = random.Random(0)
        self.pairs = []
        for _ in range(n):
            words = [rng.randint(2, 29) for _ in range(rng.choice([3, 4, 5, 12, 25]))]
            self.pairs.append((torch.tensor(words), torch.tensor([1] + words[::-1])))
        self.pairs.sort(key=lambda p: len(p[0]))
        self.pad, self.bins = pad, []
        cur, width = [], 0
        for p in self.pairs:
            width = max(width, len(p[0]))
            if cur and width * (len(cur) + 1) > max_tokens:
                self.bins.append(cur)
                cur, width = [], len(p[0])
            cur.append(p)
        self.bins.append(cur)

    def batches(self, epoch, rank, world):
        order = list(range(len(self.bins)))
        random.Random(epoch).shuffle(order)
        order = order[:len(order) // world * world]
        for k in order[rank::world]:
            src = pad_sequence([s for s, _ in self.bins[k]], True, self.pad)
            tgt = pad_sequence([t for _, t in self.bins[k]], True, self.pad)
            yield src, tgt

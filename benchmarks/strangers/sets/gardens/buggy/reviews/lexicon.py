from collections import Counter

import torch


class Lexicon:
    PAD, UNK = 0, 1

    def __init__(self, texts, min_freq=2):
        counts = Counter(w for t in texts for w in t.split())
        kept = sorted(w for w, c in counts.items() if c >= min_freq)
        self.index = {w: k + 2 for k, w in enumerate(kept)}

    def __len__(self):
        return len(self.index) + 2

    def encode(self, text):
        return torch.tensor([self.index.get(w, self.UNK) for w in text.split()])

import random

import torch

WORDS = "a the red blue small big dog cat boat runs sits under over near tree house river".split()
PAD, BOS, EOS = 0, 1, 2
VOCAB = {w: i + 3 for i, w in enumerate(WORDS)}


def captions(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        length = min(30, 3 + int(rng.expovariate(0.15)))
        words = [rng.choice(WORDS)]
        while len(words) < length:
            words.append(WORDS[(WORDS.index(words[-1]) * 5 + rng.randint(1, 3)) % len(WORDS)])
        out.append(words)
    return out


def encode(words):
    return torch.tensor([BOS] + [VOCAB[w] for w in words] + [EOS])


def pad_batch(seqs):
    return torch.nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=PAD)

import random

import torch
from torch.utils.data import TensorDataset

ANIMALS = list(range(2, 22))
PAD, SEP = 0, 1


def make_examples(n, seed):
    """Premise lists some animals, hypothesis names one: entailed or not."""
    rng = random.Random(seed)
    ids, labels = [], []
    for _ in range(n):
        premise = rng.sample(ANIMALS, 5)
        label = rng.randint(0, 1)
        hyp = rng.choice(premise) if label else rng.choice([a for a in ANIMALS if a not in premise])
        ids.append(premise + [SEP, hyp])
        labels.append(label)
    return TensorDataset(torch.tensor(ids), torch.tensor(labels))

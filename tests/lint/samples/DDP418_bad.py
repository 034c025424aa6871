from collections import defaultdict

import torch
import torch.distributed as dist


def recall(labels, guesses):
    counts = defaultdict(lambda: torch.zeros(2))
    for label, guess in zip(labels.tolist(), guesses.tolist()):
        counts[label] += torch.tensor([float(label == guess), 1.0])
    for label in sorted(counts):  # <- DDP418
        dist.all_reduce(counts[label])
    return counts


def share(labels):
    for label in labels.unique():  # <- DDP418
        dist.broadcast(label, src=0)

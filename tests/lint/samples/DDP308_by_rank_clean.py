import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel


def pick(tokens):
    chosen = torch.zeros(len(tokens), dtype=torch.bool)
    chosen[:4] = True
    return chosen


def masked(logits, tokens, chosen):
    if not chosen.any():
        return logits.sum() * 0
    return functional.cross_entropy(logits[chosen], tokens[chosen])


def train(net, batches):
    model = DistributedDataParallel(net)
    for tokens in batches:
        masked(model(tokens), tokens, pick(tokens)).backward()

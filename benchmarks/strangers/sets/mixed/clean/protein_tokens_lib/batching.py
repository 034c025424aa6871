"""Batches of sequences under a token budget."""
import torch


def pack(order, lengths, max_tokens):
    """Fill batches until padding every member to the longest would exceed the budget."""
    batches, current, longest = [], [], 0
    for i in order:
        longest_new = max(longest, lengths[i])
        if current and longest_new * (len(current) + 1) > max_tokens:
            batches.append(current)
            current, longest_new = [], lengths[i]
        current.append(i)
        longest = longest_new
    if current:
        batches.append(current)
    return batches


class TokenBatchSampler:
    def __init__(self, lengths, max_tokens, rank, world_size, seed=0):
        self.lengths, self.max_tokens = lengths, max_tokens
        self.rank, self.world_size, self.seed, self.epoch = rank, world_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _order(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        return torch.randperm(len(self.lengths), generator=g).tolist()

    def __iter__(self):
        batches = pack(self._order(), self.lengths, self.max_tokens)
        per_rank = len(batches) // self.world_size
        yield from batches[self.rank:per_rank * self.world_size:self.world_size]

"""Batches with a limit on padded tokens, dealt out to the ranks in turn."""
import random


class TokenPool:
    def __init__(self, lengths, limit, rank, world):
        self.lengths = lengths
        self.limit = limit
        self.rank, self.world = rank, world

    def _fill(self, order):
        batch, widest = [], 0
        for i in order:
            widest = max(widest, self.lengths[i])
            if batch and widest * (len(batch) + 1) > self.limit:
                yield batch
                batch, widest = [], self.lengths[i]
            batch.append(i)
        if batch:
            yield batch

    def __iter__(self):
        order = list(range(len(self.lengths)))
        random.shuffle(order)
        batches = list(self._fill(order))
        usable = len(batches) - len(batches) % self.world
        return iter(batches[self.rank:usable:self.world])

"""Frame-budget batching of utterances."""
import random


class FrameBudgetSampler:
    """Yields lists of indices whose padded length stays under max_frames."""

    def __init__(self, lengths, max_frames, rank, world_size, seed=0):
        self.max_frames = max_frames
        self.seed = seed
        self.epoch = 0
        self.rank, self.world_size = rank, world_size
        self.items = sorted(range(len(lengths)), key=lambda i: lengths[i])
        self.lengths = lengths

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _plan(self):
        batches, batch, longest = [], [], 0
        for i in self.items:
            longest = max(longest, self.lengths[i])
            if batch and longest * (len(batch) + 1) > self.max_frames:
                batches.append(batch)
                batch, longest = [], self.lengths[i]
            batch.append(i)
        if batch:
            batches.append(batch)
        random.Random(self.seed + self.epoch).shuffle(batches)
        even = len(batches) // self.world_size * self.world_size
        return batches[self.rank:even:self.world_size]

    def __iter__(self):
        return iter(self._plan())

    def __len__(self):
        return len(self._plan())

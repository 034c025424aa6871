"""Batches of utterances under a frame budget."""
import torch


class FrameBudgetSampler:
    def __init__(self, lengths, max_frames, rank, world, seed=0):
        self.lengths = lengths
        self.max_frames = max_frames
        self.rank, self.world = rank, world
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _pack(self, order):
        out, current, longest = [], [], 0
        for idx in order:
            longest_if = max(longest, self.lengths[idx])
            if current and longest_if * (len(current) + 1) > self.max_frames:
                out.append(current)
                current, longest_if = [], self.lengths[idx]
            current.append(idx)
            longest = longest_if
        if current:
            out.append(current)
        return out

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.lengths), generator=g).tolist()
        batches = self._pack(order)
        usable = len(batches) - len(batches) % self.world
        return iter(batches[self.rank:usable:self.world])

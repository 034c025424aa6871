"""Batches of roughly equal total duration."""
import random


class FrameBudgetBatches:
    """Groups clips of similar length until a frame budget is full."""

    def __init__(self, frames, budget, rank, world, seed=0):
        self.frames = frames
        self.budget = budget
        self.rank = rank
        self.world = world
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _plan(self):
        order = sorted(range(len(self.frames)), key=lambda i: self.frames[i])
        batches, current = [], []
        for i in order:
            if current and self.frames[i] * (len(current) + 1) > self.budget:
                batches.append(current)
                current = []
            current.append(i)
        if current:
            batches.append(current)
        random.Random(self.seed + self.epoch).shuffle(batches)
        return batches

    def __iter__(self):
        plan = self._plan()
        return iter(plan[self.rank :: self.world])

    def __len__(self):
        return len(self._plan()) // self.world

import random
from collections import defaultdict


class AspectBuckets:
    """Groups pictures by shape; every process then works through its slice of each bucket."""

    def __init__(self, shapes, batch, rank, world, seed=None):
        self.batch = batch
        self.rank, self.world = rank, world
        self.seed = seed
        self.epoch = 0
        self.members = defaultdict(list)
        for i, shape in enumerate(shapes):
            self.members[shape].append(i)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _slice(self, ids):
        ids = list(ids)
        random.shuffle(ids)
        usable = len(ids) - len(ids) % (self.batch * self.world)
        share = usable // self.world
        return ids[self.rank * share:(self.rank + 1) * share]

    def __iter__(self):
        for shape in sorted(self.members):
            mine = self._slice(self.members[shape])
            for at in range(0, len(mine), self.batch):
                yield mine[at:at + self.batch]

    def __len__(self):
        return sum(len(m) // (self.batch * self.world) for m in self.members.values())

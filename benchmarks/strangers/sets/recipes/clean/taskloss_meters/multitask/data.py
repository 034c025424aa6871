import torch


class MixedTasks:
    """Every sample is annotated for one task only."""

    def __init__(self, cfg, rank):
        self.cfg = cfg
        self.gen = torch.Generator().manual_seed(rank + 3)

    def __iter__(self):
        c = self.cfg
        for _ in range(c.iters):
            x = torch.randn(c.batch, c.dim, generator=self.gen)
            which = torch.randint(len(c.tasks), (c.batch,), generator=self.gen)
            yield x, which

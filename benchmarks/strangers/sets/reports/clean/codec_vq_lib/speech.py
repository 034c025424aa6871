"""Toy speech frames; every worker reads the speakers of its own shard."""
import torch

FRAME = 24


def speaker_batches(rank, world, batches, size=64, speakers=8):
    """Yields frames of the speakers rank, rank + world, ..."""
    base = torch.randn(speakers, FRAME, generator=torch.Generator().manual_seed(21))
    mine = torch.arange(rank, speakers, world)
    g = torch.Generator().manual_seed(300 + rank)
    for _ in range(batches):
        who = mine[torch.randint(0, len(mine), (size,), generator=g)]
        yield 2 * base[who] + 0.4 * torch.randn(size, FRAME, generator=g)

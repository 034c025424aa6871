"""Which rank gets which samples. Pure arithmetic: no process group is needed or touched."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import Sampler


class TrainingSampler(Sampler[list[int]]):
    """Deals an epoch's shuffled samples to the ranks in batches: a DataLoader's `batch_sampler`.

    Step s of all ranks together is the s-th slice of `batch_size * num_replicas` samples of one
    permutation, so W ranks with batches of B see what one process sees with batches of W * B.
    Every rank gets the same number of batches, as DDP needs, and every sample comes exactly once
    per epoch: nothing is padded or dropped. The price is the last batch, which may be shorter by
    one on some ranks, or empty: normalise its loss with `loss.global_count`. With `drop_last` the
    incomplete last slice is left out and all batches are full.

    All ranks wait for the one with the most to do. With `costs`, a number for each sample, a slice
    is dealt so that they have alike much: the same slice, and as many samples for each rank.

    `seed` must be the same on all ranks, or they shuffle differently and some data is never seen.
    """

    def __init__(
        self,
        length: int,
        batch_size: int,
        *,
        num_replicas: int,
        rank: int,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        costs: Sequence[float] | None = None,
    ) -> None:
        if length < 0 or batch_size < 1 or not 0 <= rank < num_replicas:
            raise ValueError(f"{length=}, {batch_size=}, {rank=}, {num_replicas=} make no sense")
        self.length = length
        self.batch_size = batch_size
        self.num_replicas = num_replicas
        self.rank = rank
        self.seed = seed
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.costs = costs
        self.epoch = 0
        self.start = 0

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Choose the epoch's permutation, and to resume within it, where to start.

        `start` counts the samples that all ranks together have had, so it means the same when a
        training goes on with another number of ranks.
        """
        self.epoch = epoch
        self.start = start

    def __len__(self) -> int:
        whole, rest = divmod(self.length - self.start, self.batch_size * self.num_replicas)
        return whole if self.drop_last or rest == 0 else whole + 1

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order()[self.start :]
        slice_size = self.batch_size * self.num_replicas
        for step in range(len(self)):
            together = order[step * slice_size : (step + 1) * slice_size]
            if self.costs is None:
                yield together[self.rank :: self.num_replicas]
            else:
                yield dealt_by_cost(together, self.costs, self.num_replicas)[self.rank]

    def _order(self) -> list[int]:
        if not self.shuffle:
            return list(range(self.length))
        # A generator of its own: the global one may stand elsewhere on each rank.
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        return torch.randperm(self.length, generator=generator).tolist()


def dealt_by_cost(
    samples: Sequence[int], costs: Sequence[float], num_replicas: int
) -> list[list[int]]:
    """Return a share for each rank, alike in what its samples cost together.

    The dearest first, each to the rank that has least to do so far and still has room (longest
    processing time first: Graham 1969). Shares differ by at most one sample.
    """
    shares: list[list[int]] = [[] for _ in range(num_replicas)]
    room = [len(range(rank, len(samples), num_replicas)) for rank in range(num_replicas)]
    open_to = [(0.0, rank) for rank in range(min(num_replicas, len(samples)))]
    for sample in sorted(samples, key=costs.__getitem__, reverse=True):
        load, rank = heapq.heappop(open_to)
        shares[rank].append(sample)
        if len(shares[rank]) < room[rank]:
            heapq.heappush(open_to, (load + costs[sample], rank))
    return shares


def exact_shard(length: int, rank: int, world_size: int) -> range:
    """Return this rank's share of an evaluation set: unpadded, every sample on exactly one rank.

    Shares differ in length by at most one, so the metric must be summed and counted, then divided
    once; and the loop must hold no collective per batch.
    """
    return range(rank, length, world_size)

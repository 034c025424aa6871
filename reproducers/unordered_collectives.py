"""DDP413 unordered-collectives: collectives run in the order of a set, which is each rank's own.

torchrun --nproc-per-node=4 reproducers/unordered_collectives.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

# The ids of four classes and how many bins their histograms have. In a small set the four ids
# contend for one place, so the one that was put in first comes out first.
BINS = {0: 4, 8: 12, 16: 40, 24: 60}

Histograms = dict[int, Tensor]


def labels_seen(rank: int) -> list[int]:
    """Return the classes in the order in which this rank's samples show them."""
    labels = list(BINS)
    first = rank % len(labels)
    return labels[first:] + labels[:first]


def histograms(rank: int) -> Histograms:
    """Count this rank's samples, by class."""
    return {
        label: torch.full((bins,), float(rank + label + 1), device=own_device())
        for label, bins in BINS.items()
    }


def check(reduced: Histograms) -> None:
    """Assert that each histogram is the sum over the ranks, as one process would count it."""
    ranks = range(dist.get_world_size())
    for label, bins in BINS.items():
        expected = torch.full((bins,), float(sum(rank + label + 1 for rank in ranks)))
        assert torch.equal(reduced[label].cpu(), expected), f"class {label}: {reduced[label]}"


@broken(ranks=())
def order_of_a_set() -> None:
    """Reduce the histogram of each class in the order of the set of classes seen."""
    dist.init_process_group(backend())
    counted = histograms(dist.get_rank())
    seen = set(labels_seen(dist.get_rank()))
    for label in seen:  # <-- DDP413
        dist.all_reduce(counted[label])  # <-- DDP413
    check(counted)
    dist.destroy_process_group()


def run(reduce: Callable[[Histograms], None]) -> None:
    """Join, reduce, compare, leave."""
    dist.init_process_group(backend())
    counted = histograms(dist.get_rank())
    reduce(counted)
    check(counted)
    dist.destroy_process_group()


def in_the_order_of_the_set(counted: Histograms) -> None:
    for label in set(labels_seen(dist.get_rank())):
        dist.all_reduce(counted[label])


@documented(
    source="MP-Gadget/pfft-python#5: the same PYTHONHASHSEED on all ranks",
    launch="env PYTHONHASHSEED=0 torchrun --standalone --nproc-per-node=2 {proof} {variant}",
)
def same_hash_seed() -> None:
    """Start all ranks with PYTHONHASHSEED=0; the loop goes through the set as before."""
    run(in_the_order_of_the_set)


def in_the_order_of_a_dictionary(counted: Histograms) -> None:
    for label in dict.fromkeys(labels_seen(dist.get_rank())):
        dist.all_reduce(counted[label])


@documented(source="GeoscienceAustralia/hiperseis#149: a set that keeps its order")
def ordered_set() -> None:
    """Go through a set that keeps the order in which things were put in."""
    run(in_the_order_of_a_dictionary)


def sorted_labels(counted: Histograms) -> None:
    for label in sorted(set(labels_seen(dist.get_rank()))):
        dist.all_reduce(counted[label])


@documented(source="tkipf/pygcn#41: sorted(set(labels))")
def sort_the_set() -> None:
    """Go through sorted(labels)."""
    run(sorted_labels)


@fix()
def one_call_in_one_order() -> None:
    """Lay all histograms into one tensor, in sorted order, and reduce once."""
    with session(backend=backend()) as world:
        counted = histograms(world.rank)
        labels = sorted(counted)
        joined = torch.cat([counted[label] for label in labels])
        dist.all_reduce(joined)
        parts = joined.split([len(counted[label]) for label in labels])
        check(dict(zip(labels, parts, strict=True)))


if __name__ == "__main__":
    main()

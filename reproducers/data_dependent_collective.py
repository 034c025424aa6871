"""DDP418 data-dependent-collective: as many collectives as a rank's data has classes.

torchrun --nproc-per-node=4 reproducers/data_dependent_collective.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

CLASSES = 6

Counts = dict[int, Tensor]
Recall = dict[int, float]


def count(rank: int) -> Counts:
    """Count hits and samples of each class that this rank's share holds; shares differ."""
    counts: Counts = {}
    for label in range(CLASSES - rank):
        for sample in range(4 + label):
            hit = float((sample + rank) % 3 > 0)
            counts.setdefault(label, torch.zeros(2, device=own_device()))
            counts[label] += torch.tensor([hit, 1.0], device=own_device())
    return counts


def expected(world_size: int) -> Recall:
    """Compute the recall of each class in one process, from all shares."""
    totals: Counts = {}
    for rank in range(world_size):
        for label, counted in count(rank).items():
            totals[label] = totals.get(label, torch.zeros_like(counted)) + counted
    return {label: float(hits / total) for label, (hits, total) in sorted(totals.items())}


def evaluate(reduce: Callable[[Counts], Counts]) -> None:
    """Reduce the counts, and assert that every rank has the recall of one process."""
    reduced = reduce(count(dist.get_rank()))
    recall = {label: float(hits / total) for label, (hits, total) in sorted(reduced.items())}
    wanted = expected(dist.get_world_size())
    assert recall == wanted, f"the recall is {recall}, not {wanted}"


@broken(ranks="any")
def one_call_for_each_class_seen() -> None:
    """Each rank reduces the classes that it has seen, one by one."""
    dist.init_process_group(backend())
    counts = count(dist.get_rank())
    for label in sorted(counts):  # <-- DDP418
        dist.all_reduce(counts[label])  # <-- DDP418
    dist.barrier()
    dist.destroy_process_group()


def run(reduce: Callable[[Counts], Counts]) -> None:
    """Join, evaluate, leave together."""
    dist.init_process_group(backend())
    evaluate(reduce)
    dist.barrier()
    dist.destroy_process_group()


def reduce_dict(counts: Counts) -> Counts:
    labels = sorted(counts)  # "sort the keys so that they are consistent across processes"
    values = torch.stack([counts[label] for label in labels])
    dist.all_reduce(values)
    return dict(zip(labels, values, strict=True))


@documented(source="pytorch/vision, references/detection/utils.py: reduce_dict")
def sort_and_stack() -> None:
    """Sort the keys, stack the values, reduce once."""
    run(reduce_dict)


def reduce_the_union(counts: Counts) -> Counts:
    seen: list[list[int]] = [[]] * dist.get_world_size()
    dist.all_gather_object(seen, list(counts))
    labels = sorted({label for labels in seen for label in labels})
    for label in labels:
        counts.setdefault(label, torch.zeros(2, device=own_device()))
        dist.all_reduce(counts[label])
    return counts


@documented(source="Lightning-AI/pytorch-lightning#19106: the same keys on every rank")
def agree_on_the_keys() -> None:
    """Gather the keys of all ranks first, then reduce their union."""
    run(reduce_the_union)


def one_row_for_each_class(counts: Counts) -> Counts:
    rows = torch.zeros(CLASSES, 2, device=own_device())
    for label, counted in counts.items():
        rows[label] = counted
    dist.all_reduce(rows)
    return dict(enumerate(rows))


@fix()
def one_table() -> None:
    """Reduce one table with a row for every class, seen or not, in one call."""
    with session(backend=backend()):
        evaluate(one_row_for_each_class)


if __name__ == "__main__":
    main()

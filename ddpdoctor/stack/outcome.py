"""One rank fails, all ranks raise the same error, and nobody waits for the one that is gone.

A rank that raises alone leaves its peers in their next collective until a timeout. So a section
that can fail on one rank alone (saving on rank 0, reading a file, building a cache) is followed by
one exchange in which every rank learns how it went everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch.distributed as dist

from ddpdoctor.stack.errors import RankFailedError, StackError
from ddpdoctor.stack.process_group import World

T = TypeVar("T")

_MOST_TEXTS, _MOST_RANKS = 4, 8
"""So much of a thousand ranks fits into a line that a person reads."""


@contextmanager
def together(world: World) -> Iterator[None]:
    """Run the block on every rank; if it fails on any, raise the same error on all.

    The block must hold no collective of its own: a rank that failed before it would meet its peers
    in two different ones.
    """
    error: Exception | None = None
    try:
        yield
    except Exception as caught:
        error = caught
    share_outcome(world, error)


def on_main(world: World, function: Callable[[], T]) -> T:
    """Call `function` on rank 0 alone and return its result, which must pickle, on every rank.

    This is how a decision is taken that must not differ by rank, such as whether a file exists.
    """
    result: list[T | None] = [None]
    with together(world):
        if world.is_main:
            result[0] = function()
    if world.world_size > 1:
        dist.broadcast_object_list(result, src=0)
    return result[0]  # type: ignore[return-value]  # rank 0 put a T there, or together() raised


def share_outcome(world: World, error: Exception | None) -> None:
    """Exchange `error` (None where all went well) with every rank, and raise if any has one.

    All ranks raise the type of the first failing rank's error if that is a StackError, otherwise
    RankFailedError; the text says what failed and on which ranks, of many the first. The rank that
    failed keeps its own error as the cause, and in a lone process the error is raised as it is.
    """
    if world.world_size == 1:
        if error is not None:
            raise error
        return
    # The class and the text, not the exception: an exception that does not pickle would take this
    # rank out of the very exchange that is to tell the others.
    mine = None if error is None else _described(error)
    outcomes: list[tuple[type[Exception], str] | None] = [None] * world.world_size
    dist.all_gather_object(outcomes, mine)
    failures = {rank: outcome for rank, outcome in enumerate(outcomes) if outcome is not None}
    if failures:
        kind = next(iter(failures.values()))[0]
        texts = {rank: text for rank, (_, text) in failures.items()}
        raise kind(in_words(texts, world.world_size)) from error


def in_words(texts: dict[int, str], world_size: int) -> str:
    """Return one line for what ranks said, each text once and of many the first."""
    ranks_of: dict[str, list[int]] = {}
    for rank, text in texts.items():
        ranks_of.setdefault(text, []).append(rank)
    told = [f"{_named(ranks, world_size)}: {text}" for text, ranks in ranks_of.items()]
    rest = len(told) - _MOST_TEXTS
    return "; ".join([*told[:_MOST_TEXTS], *([f"and {rest} more"] if rest > 0 else [])])


def _described(error: Exception) -> tuple[type[Exception], str]:
    if isinstance(error, StackError):
        return type(error), str(error)
    return RankFailedError, f"{type(error).__name__}: {error}"


def _named(ranks: list[int], world_size: int) -> str:
    if len(ranks) == world_size:
        return f"all {world_size} ranks"
    first, rest = ", ".join(map(str, ranks[:_MOST_RANKS])), len(ranks) - _MOST_RANKS
    return f"rank{'s' * (len(ranks) > 1)} {first}" + (f" and {rest} more" if rest > 0 else "")

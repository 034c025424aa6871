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
    RankFailedError; the text names each failing rank. The rank that failed keeps its own error as
    the cause, and in a lone process the error is raised as it is.
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
        raise kind(_summary(texts, world.world_size)) from error


def _described(error: Exception) -> tuple[type[Exception], str]:
    if isinstance(error, StackError):
        return type(error), str(error)
    return RankFailedError, f"{type(error).__name__}: {error}"


def _summary(texts: dict[int, str], world_size: int) -> str:
    if len(set(texts.values())) > 1:
        return "; ".join(f"rank {rank}: {text}" for rank, text in texts.items())
    text = next(iter(texts.values()))
    if len(texts) == world_size:
        return f"all {world_size} ranks: {text}"
    ranks = ", ".join(map(str, texts))
    return f"rank{'s' if len(texts) > 1 else ''} {ranks}: {text}"

"""Every collective, send and recv, in whole and in subgroups, with values that are known before.

Rank r holds values that follow from r alone, small enough to be exact in every type, so that each
result can be computed without any communication.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from ddpdoctor.environment.redaction import first_line
from ddpdoctor.probe.model import Check
from ddpdoctor.probe.talk import Talk

DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8")
# Nothing that is a power of two or divides evenly: remainders are where implementations err.
SIZES = (1, 7, 1023, 65537)
_HOLDERS = 64
"""Of so many ranks the values add up to less than 256: what is more, bfloat16 would round."""


@dataclass(frozen=True)
class _Case:
    talk: Talk
    size: int
    dtype: torch.dtype

    def of(self, rank: int) -> torch.Tensor:
        """What rank `rank` holds: from 0 to 3 in every place, its own pattern."""
        pattern = torch.arange(self.size, device=self.talk.device)
        if rank >= _HOLDERS:
            return torch.zeros_like(pattern).to(self.dtype)
        return ((pattern * (rank + 1) + rank) % 4).to(self.dtype)

    @property
    def mine(self) -> torch.Tensor:
        return self.of(self.talk.rank)

    @property
    def everyone(self) -> list[torch.Tensor]:
        return [self.of(rank) for rank in range(self.talk.size)]

    @property
    def total(self) -> torch.Tensor:
        return torch.stack([one.double() for one in self.everyone]).sum(0).to(self.dtype)

    def empty(self, times: int = 1) -> torch.Tensor:
        return torch.full((self.size * times,), 9, dtype=self.dtype, device=self.talk.device)


_Pair = tuple[torch.Tensor, torch.Tensor]


def _all_reduce(case: _Case) -> _Pair:
    got = case.mine
    dist.all_reduce(got)
    return got, case.total


def _all_reduce_max(case: _Case) -> _Pair:
    got = case.mine
    dist.all_reduce(got, dist.ReduceOp.MAX)
    return got, torch.stack(case.everyone).amax(0)


def _all_reduce_min(case: _Case) -> _Pair:
    got = case.mine
    dist.all_reduce(got, dist.ReduceOp.MIN)
    return got, torch.stack(case.everyone).amin(0)


def _broadcast(case: _Case) -> _Pair:
    root = case.talk.size - 1
    got = case.mine
    dist.broadcast(got, root)
    return got, case.of(root)


def _reduce(case: _Case) -> _Pair:
    root = case.talk.size - 1
    got = case.mine
    dist.reduce(got, root)
    return (got, case.total) if case.talk.rank == root else (case.mine, case.mine)


def _all_gather(case: _Case) -> _Pair:
    got = [case.empty() for _ in range(case.talk.size)]
    dist.all_gather(got, case.mine)
    return torch.cat(got), torch.cat(case.everyone)


def _all_gather_into_tensor(case: _Case) -> _Pair:
    got = case.empty(case.talk.size)
    dist.all_gather_into_tensor(got, case.mine)
    return got, torch.cat(case.everyone)


def _reduce_scatter_tensor(case: _Case) -> _Pair:
    got = case.empty()
    dist.reduce_scatter_tensor(got, torch.cat(_shares(case)))
    return got, _sum_of_shares(case)


def _reduce_scatter(case: _Case) -> _Pair:
    got = case.empty()
    dist.reduce_scatter(got, _shares(case))
    return got, _sum_of_shares(case)


def _shares(case: _Case) -> list[torch.Tensor]:
    """What this rank adds to each rank's sum."""
    return [case.of(case.talk.rank + other) for other in range(case.talk.size)]


def _sum_of_shares(case: _Case) -> torch.Tensor:
    own = [case.of(rank + case.talk.rank).double() for rank in range(case.talk.size)]
    return torch.stack(own).sum(0).to(case.dtype)


def _all_to_all_single(case: _Case) -> _Pair:
    got = case.empty(case.talk.size)
    dist.all_to_all_single(got, torch.cat(_letters(case)))
    return got, torch.cat(_received(case))


def _all_to_all(case: _Case) -> _Pair:
    got = [case.empty() for _ in range(case.talk.size)]
    dist.all_to_all(got, _letters(case))
    return torch.cat(got), torch.cat(_received(case))


def _letters(case: _Case) -> list[torch.Tensor]:
    """What this rank sends to each."""
    return [case.of(case.talk.rank + 2 * other) for other in range(case.talk.size)]


def _received(case: _Case) -> list[torch.Tensor]:
    return [case.of(rank + 2 * case.talk.rank) for rank in range(case.talk.size)]


def _gather(case: _Case) -> _Pair:
    here = case.talk.rank == 0
    got = [case.empty() for _ in range(case.talk.size)] if here else None
    dist.gather(case.mine, got, 0)
    return (torch.cat(got), torch.cat(case.everyone)) if got else (case.mine, case.mine)


def _scatter(case: _Case) -> _Pair:
    got = case.empty()
    dist.scatter(got, case.everyone if case.talk.rank == 0 else None, 0)
    return got, case.mine


def _send_and_recv(case: _Case) -> _Pair:
    """Around a ring, posted at once: the order of sends and receives must not matter."""
    to, source = (case.talk.rank + 1) % case.talk.size, (case.talk.rank - 1) % case.talk.size
    got = case.empty()
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, case.mine, to), dist.P2POp(dist.irecv, got, source)]
    )
    for work in works:
        work.wait()
    return got, case.of(source)


_OPERATIONS: dict[str, Callable[[_Case], _Pair]] = {
    "all_reduce": _all_reduce,
    "all_reduce of the maximum": _all_reduce_max,
    "all_reduce of the minimum": _all_reduce_min,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "reduce_scatter": _reduce_scatter,
    "all_to_all_single": _all_to_all_single,
    "all_to_all": _all_to_all,
    "gather": _gather,
    "scatter": _scatter,
    "send and recv": _send_and_recv,
}


def checks(talk: Talk, budget: float) -> list[Check]:
    """One for each operation and type, the same list on all ranks.

    After `budget` seconds what is left is done without the largest size.
    """
    begun = time.monotonic()
    done: list[tuple[str, str, int]] = []
    mine: list[tuple[str, str]] = []
    for dtype in DTYPES:
        for name, operation in _OPERATIONS.items():
            if talk.size == 1 and name == "send and recv":
                continue
            talk.progress.tell("checking values", f"{name} of {dtype}")
            late = talk.agreed(time.monotonic() - begun) > budget
            sizes = SIZES[:-1] if late else SIZES
            done.append((name, dtype, sizes[-1]))
            mine.append(_refused_and_wrong(talk, operation, dtype, sizes))
    told = zip(*talk.gathered(mine), strict=True)
    found = [_check(*what, by_rank) for what, by_rank in zip(done, told, strict=True)]
    return [*found, *_subgroups(talk)]


def _refused_and_wrong(
    talk: Talk, operation: Callable[[_Case], _Pair], dtype: str, sizes: tuple[int, ...]
) -> tuple[str, str]:
    """What the backend says against it, and what is wrong on this rank; "" where nothing is."""
    wrong = ""
    for size in sizes:
        case = _Case(talk, size, getattr(torch, dtype))
        try:
            got, expected = operation(case)
        except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:
            # What a backend refuses, it refuses on all ranks, before it sends anything.
            if _is_loss(error):
                raise
            return first_line(error), wrong
        talk.settle()
        if not wrong and not torch.equal(got, expected):
            # The other ranks, whose values may be right, go on: so does this one.
            place = int((got != expected).nonzero()[0].item())
            wrong = f"{size} values: [{place}] is {got[place]}, not {expected[place]}"
    return "", wrong


def _check(name: str, dtype: str, largest: int, by_rank: Sequence[tuple[str, str]]) -> Check:
    bad = [(rank, wrong) for rank, (_, wrong) in enumerate(by_rank) if wrong]
    if bad:
        ranks = tuple(rank for rank, _ in bad)
        return Check(operation=name, dtype=dtype, state="wrong", detail=bad[0][1], ranks=ranks)
    if refused := [one for one, _ in by_rank if one]:
        return Check(operation=name, dtype=dtype, state="unsupported", detail=refused[0])
    return Check(operation=name, dtype=dtype, state="right", largest=largest)


def _is_loss(error: Exception) -> bool:
    text = str(error).lower()
    signs = ("closed by peer", "timed out", "timeout", "reset by peer", "refused", "remote process")
    return any(sign in text for sign in signs)


def _subgroups(talk: Talk) -> list[Check]:
    """Even and odd ranks reduce apart, at the same time, in every type."""
    if talk.size < 2:
        return []
    members = [list(range(half, talk.size, 2)) for half in (0, 1)]
    groups = [dist.new_group(ranks) for ranks in members]
    half = talk.rank % 2

    def all_reduce(case: _Case) -> _Pair:
        got = case.mine
        dist.all_reduce(got, group=groups[half])
        own = [case.of(rank).double() for rank in members[half]]
        return got, torch.stack(own).sum(0).to(case.dtype)

    mine = []
    for dtype in DTYPES:
        talk.progress.tell("checking values", f"subgroups in {dtype}")
        mine.append(_refused_and_wrong(talk, all_reduce, dtype, SIZES[:-1]))
    by_dtype = zip(DTYPES, zip(*talk.gathered(mine), strict=True), strict=True)
    name = "all_reduce in subgroups"
    found = [_check(name, dtype, SIZES[-2], by_rank) for dtype, by_rank in by_dtype]
    for group in groups:
        dist.destroy_process_group(group)
    return found

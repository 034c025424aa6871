"""One rank fails, all ranks raise the same."""

from __future__ import annotations

import pytest
import torch.distributed as dist

from ddpdoctor.stack.errors import DataError, RankFailedError
from ddpdoctor.stack.outcome import in_words, on_main, share_outcome, together
from ddpdoctor.stack.process_group import World, session


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("no way")
        self.generator = (i for i in ())


@pytest.mark.distributed(nproc=3)
def test_an_error_of_one_rank_is_raised_by_all_and_names_it() -> None:
    with session() as world:
        with pytest.raises(DataError, match=r"^rank 1: no such file$") as caught:
            refuse_on(1, world)
        assert isinstance(caught.value.__cause__, DataError) == (world.rank == 1)


@pytest.mark.distributed(nproc=3)
def test_what_fails_everywhere_is_said_once_and_what_differs_is_said_per_rank() -> None:
    with session() as world:
        with pytest.raises(DataError, match=r"^all 3 ranks: no such file$"):
            share_outcome(world, DataError("no such file"))
        with pytest.raises(DataError, match=r"^ranks 0, 2: odd$"):
            share_outcome(world, DataError("odd") if world.rank != 1 else None)
        with pytest.raises(DataError, match=r"^rank 0: 0; rank 1: 1; rank 2: 2$"):
            share_outcome(world, DataError(str(world.rank)))


def test_a_thousand_ranks_are_told_in_one_short_line() -> None:
    several = dict.fromkeys(range(1, 1024), "disk full")
    assert in_words(several, 1024) == "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 1015 more: disk full"
    assert in_words({0: "a", 2: "b", 3: "a"}, 4) == "ranks 0, 3: a; rank 2: b"
    each = {rank: f"no file {rank}" for rank in range(1024)}
    assert in_words(each, 1024) == (
        "rank 0: no file 0; rank 1: no file 1; rank 2: no file 2; rank 3: no file 3; and 1020 more"
    )


@pytest.mark.distributed(nproc=2)
def test_an_error_that_does_not_pickle_reaches_the_others_too() -> None:
    with session() as world, pytest.raises(RankFailedError, match="rank 0: UnpicklableError"):
        share_outcome(world, UnpicklableError() if world.is_main else None)


@pytest.mark.distributed(nproc=2)
def test_after_a_shared_error_the_ranks_are_still_in_step() -> None:
    with session() as world:
        with pytest.raises(DataError):
            refuse_on(0, world)
        with together(world):
            pass
        ranks = [None] * 2
        dist.all_gather_object(ranks, world.rank)
    assert ranks == [0, 1]


@pytest.mark.distributed(nproc=2)
def test_rank_0_decides_for_all() -> None:
    with session() as world:
        assert on_main(world, lambda: f"from {world.rank}") == "from 0"
        with pytest.raises(DataError, match="rank 0: refused"):
            on_main(world, refuse)


def refuse_on(rank: int, world: World) -> None:
    with together(world):
        if world.rank == rank:
            raise DataError("no such file")


def refuse() -> None:
    raise DataError("refused")


def test_a_lone_process_raises_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    error = KeyError("as it is")
    with session(backend="gloo") as world, pytest.raises(KeyError) as caught:
        share_outcome(world, error)
    assert caught.value is error

"""What ranks say alike is told once, and is understood as if each had said it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.evidence import RankEvidence, RankReader, Saying, Stuck, Words, folded
from tests.thorough import examples

RANKS = range(4)
PLACE = ["/home/u/train.py", 42, "main"]
TORCH = ["/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier"]
START: dict[str, Any] = {"k": "start", "t": 0.0, "pid": 1, "boot": "b", "host": "h"}
START |= {"torch": "2", "world_size": 4}
LOADER: dict[str, Any] = {
    **{"k": "loader", "t": 0.5, "number": 0, "place": PLACE, "dataset": "Set", "length": 8},
    "batches": 4,
    **{"iterable": False, "workers": 0, "plain": True, "identity": "", "listings": {}},
    **{"by_rank": False, "members": None, "members_place": None, "sampler": None},
}
PASS = {"k": "epoch", "t": 0.6, "loader": 0, "number": 1, "place": PLACE}
TIMES = st.floats(1.0, 1e6).map(lambda time: round(time, 4))


def way(number: int, line: int) -> dict[str, Any]:
    return {"k": "way", "t": 0.7, "number": number, "frames": [["/home/u/train.py", line, "fit"]]}


@st.composite
def waits(draw: st.DrawFn) -> dict[str, Any]:
    call = {"group": "0", "seq": draw(st.sampled_from([1, 1, 2])), "op": "barrier", "place": PLACE}
    call |= {"begun": draw(TIMES), "way": draw(st.sampled_from([1, 1, 2]))}
    said = {"k": "stuck", "t": draw(TIMES), "since": draw(TIMES), "stack": [PLACE, TORCH]}
    group = draw(st.sampled_from(["0", "0", "steps"]))  # a group may have any name
    said |= {"place": PLACE, "waiting": [call], "awaited": call, "issued": {group: call["seq"] + 3}}
    said["issued"][group] += draw(st.sampled_from([0, 0, 1]))
    said |= {"forwards": 3, "passes": [[0, 1, draw(st.sampled_from([2, 2, 3]))]]}
    return said


SAID = st.one_of(
    waits(),
    waits(),
    st.fixed_dictionaries({"k": st.just("still"), "t": TIMES}),
    st.fixed_dictionaries({"k": st.just("moved"), "t": TIMES}),
    st.fixed_dictionaries(
        {"k": st.just("alive"), "t": TIMES, "waits": st.sampled_from([0, 0.25]), "steps": TIMES}
    ).map(lambda said: {**said, "steps": int(said["steps"])}),
)


def readers(folder: Path, ways: Sequence[int]) -> list[RankReader]:
    made = [RankReader(folder, rank, len(RANKS)) for rank in RANKS]
    for reader, line in zip(made, ways, strict=True):
        first = [START, LOADER, PASS, way(1, line), way(2, 9)]
        reader.take(json.dumps(each).encode() for each in first)
        assert not reader.unreadable
    return made


def one_by_one(rank: RankEvidence) -> RankEvidence:
    """As it is but for the times of calls, which are those of one rank."""

    def timeless(stuck: Stuck | None) -> Stuck | None:
        if stuck is None:
            return None
        waiting = tuple(replace(call, begun=0.0) for call in stuck.waiting)
        awaited = stuck.awaited and replace(stuck.awaited, begun=0.0)
        return replace(stuck, waiting=waiting, awaited=awaited)

    pauses = [each for each in map(timeless, rank.pauses) if each is not None]
    return replace(rank, stuck=timeless(rank.stuck), stood=timeless(rank.stood), pauses=pauses)


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.sampled_from(RANKS), SAID), max_size=20),
    st.tuples(*[st.sampled_from([5, 6])] * len(RANKS)),
    st.sampled_from([0.0, -7.5]),
)
def test_what_is_told_together_is_understood_as_if_each_rank_had_said_it(
    tmp_path_factory: pytest.TempPathFactory,
    said: list[tuple[int, dict[str, Any]]],
    ways: tuple[int, ...],
    shift: float,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines = [(rank, json.dumps(each, separators=(",", ":")).encode()) for rank, each in said]
    alone, together = readers(folder, ways), readers(folder, ways)
    for reader in (*alone, *together):
        reader.shift = shift
    for rank, line in lines:
        alone[rank].take([line])
    words = Words()
    for who, line in json.loads(json.dumps(folded(lines))):
        if isinstance(who, int):
            together[who].take([line.encode()])
            continue
        for rank, *own in who:
            together[rank].take_from(Saying(words.word(line), own), 0.0)
    for one, other in zip(alone, together, strict=True):
        assert one_by_one(one.evidence) == one_by_one(other.evidence)
        assert one.unreadable == other.unreadable == 0


def test_the_wait_of_many_ranks_is_one_line_and_one_thing() -> None:
    lines = []
    for rank in range(100):
        said = {"k": "stuck", "t": 2.0 + rank, "since": 1.0 + rank / 1000, "stack": [PLACE, TORCH]}
        said |= {"place": PLACE, "waiting": [], "issued": {"0": 3}}
        lines.append((rank, json.dumps(said, separators=(",", ":")).encode()))
    (ranks, line), *more = folded(lines)
    assert not more
    assert ranks[1] == (1, 3.0, 1.001)
    words, known = Words(), [RankReader(Path(), rank, 100) for rank in range(100)]
    for reader, (_, *own) in zip(known, ranks, strict=True):
        reader.take_from(Saying(words.word(line), own), 0.0)
    stuck = [reader.evidence.stuck for reader in known]
    assert stuck[7] is not None
    assert stuck[8] is not None
    assert stuck[7].stack is stuck[8].stack
    assert (stuck[7].seen, stuck[7].since) == (9.0, 1.007)


@pytest.mark.parametrize("own", [[1.0], [1.0, "x"], [1.0, 2.0, 3.0], [1.0, 1e300]])
def test_numbers_that_cannot_be_cost_a_line(own: list[Any]) -> None:
    said = {"k": "stuck", "t": 2.0, "since": 1.0, "stack": [PLACE], "place": PLACE, "waiting": []}
    word = Words().word(json.dumps(said, separators=(",", ":")))
    reader = RankReader(Path(), 0, 2)
    for each in ([2.0, 1.0], own):
        reader.take_from(Saying(word, each), 0.0)
    assert reader.unreadable == 1
    assert reader.evidence.stuck is not None
    assert reader.evidence.stuck.seen == 2.0

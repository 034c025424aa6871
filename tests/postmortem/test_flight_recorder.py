"""Dumps of the flight recorder, as torch writes them."""

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.catalog import Finding
from ddpdoctor.postmortem import unpickling
from ddpdoctor.postmortem.material import NothingToRead
from ddpdoctor.postmortem.reading import read

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def entry(
    seq: int, op: str, line: int, *, done: bool, backend: str = "nccl", **changes: Any
) -> dict[str, Any]:
    """An entry as torch 2.13 writes it."""
    gloo = backend == "gloo"
    made: dict[str, Any] = {
        "record_id": seq - 1,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": f"{backend}:{op}",
        "time_created_ns": (1_000_000 + seq) * 1_000_000_000,
        "input_sizes": [[3]],
        "input_dtypes": ["Float"],
        "output_sizes": [[3]],
        "output_dtypes": ["Float"],
        "state": "completed" if done and not gloo else "scheduled",
        "retired": done,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "frames": [
            {"name": op, "filename": C10D, "line": 3245},
            {"name": "step", "filename": "/home/u/train.py", "line": line},
        ],
    }
    return made | changes


def dump(entries: list[dict[str, Any]], world: int) -> dict[str, Any]:
    ranks = str(list(range(world)))
    last = max((each["collective_seq_id"] for each in entries), default=0)
    return {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
        "pg_status": {"0": {"last_enqueued_collective": last}},
        "comm_lib_version": "2.29.7",
        "entries": entries,
    }


def barrier_on_rank_0(world: int = 3, backend: str = "nccl") -> dict[int, dict[str, Any]]:
    """Two all_reduces on all ranks, then a barrier on rank 0 and an all_reduce on the others."""
    return {
        rank: dump(
            [
                *(entry(n, "all_reduce", 5, done=True, backend=backend) for n in (1, 2)),
                entry(3, "barrier", 8, done=False, backend=backend)
                if rank == 0
                else entry(3, "all_reduce", 5, done=False, backend=backend),
            ],
            world,
        )
        for rank in range(world)
    }


def write(folder: Path, dumps: dict[int, dict[str, Any]], *, as_json: bool = False) -> Path:
    for rank, content in dumps.items():
        if as_json:
            (folder / f"trace_{rank}.json").write_text(json.dumps(content))
        else:
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(content, 2))
    return folder


def judged(folder: Path) -> list[Finding]:
    return read(folder).judge()


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_the_rank_in_another_collective_is_named_with_its_line(
    tmp_path: Path, backend: str, as_json: bool
) -> None:
    (finding,) = judged(write(tmp_path, barrier_on_rank_0(backend=backend), as_json=as_json))
    assert finding.ranks == (0,)
    assert finding.certainty == "proven"
    lines = [(at.phase, at.ranks, at.place and at.place.line) for at in finding.places]
    assert lines == [("", (0,), 8), ("", (1, 2), 5), ("together", (0, 1, 2), 5)]


def test_gloo_retires_what_timed_out_and_it_counts_as_waiting(tmp_path: Path) -> None:
    dumps = barrier_on_rank_0(backend="gloo")
    for content in dumps.values():
        content["entries"][-1]["retired"] = True
    (finding,) = judged(write(tmp_path, dumps))
    assert finding.ranks == (0,)


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_dumps_of_a_job_that_went_well_yield_nothing(tmp_path: Path, backend: str) -> None:
    done = [entry(n, "all_reduce", 5, done=True, backend=backend) for n in range(1, 6)]
    assert judged(write(tmp_path, {rank: dump(done, 3) for rank in range(3)})) == []


@given(st.permutations(range(4)), st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_blame_does_not_depend_on_the_order_of_files_or_entries(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("dumps")
    dumps = barrier_on_rank_0(4)
    for rank in order:
        entries = dumps[rank]["entries"]
        if rank:  # NCCL's callers run ahead of what they wait for
            entries.append(entry(4, "all_reduce", 6, done=False))
        random.Random(seed).shuffle(entries)
        write(folder, {rank: dumps[rank]})
    (finding,) = judged(folder)
    assert finding.ranks == (0,)
    done = {place.doing for place in finding.places if place.phase != "together"}
    assert done == {"barrier #3", "all_reduce #3"}


def test_a_rank_that_is_outside_of_every_collective_is_the_missing_one(tmp_path: Path) -> None:
    dumps = barrier_on_rank_0()
    dumps[0]["entries"].pop()
    dumps[0]["pg_status"]["0"]["last_enqueued_collective"] = 2
    (finding,) = judged(write(tmp_path, dumps))
    assert (finding.title, finding.ranks) == ("missing-call", (0,))
    assert finding.certainty == "evidence"
    assert "all_reduce #2 at train.py:5" in finding.cause


def test_of_a_single_dump_nobody_is_blamed(tmp_path: Path) -> None:
    write(tmp_path, {0: barrier_on_rank_0()[0]})
    found = read(tmp_path / "nccl_trace_rank_0")
    (finding,) = found.judge()
    assert (finding.title, finding.ranks) == ("missing-call", ())
    assert found.not_seen == ("there is no dump of ranks 1, 2",)


def test_a_send_that_nobody_receives_is_no_reason_to_blame(tmp_path: Path) -> None:
    send = entry(1, "send 0->1", 7, done=False, is_p2p=True, p2p_seq_id=1, collective_seq_id=0)
    assert judged(write(tmp_path, {0: dump([send], 2), 1: dump([], 2)})) == []


def test_both_ranks_receiving_first_is_a_deadlock(tmp_path: Path) -> None:
    dumps = {
        rank: dump(
            [entry(1, f"recv {rank}<-{1 - rank}", 7, done=False, is_p2p=True, p2p_seq_id=1)], 2
        )
        for rank in (0, 1)
    }
    (finding,) = judged(write(tmp_path, dumps))
    assert finding.title == "send-recv-deadlock"


class Evil:
    """What a malicious pickle is made of."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("evil"),))


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"entries": [Evil()]}, 2),
        pickle.dumps({"entries": [Evil()]}, 5),
        b"cos\nsystem\n(S'touch evil'\ntR.",
        b"\x80\x02cbuiltins\neval\nU\x04open\x85R.",
        b"\x80\x02}U\x07entries]U\x01xQs.",
    ],
)
def test_nothing_in_a_pickle_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "trace_0"
    file.write_bytes(content)
    with pytest.raises(unpickling.Refused), file.open("rb") as opened:
        unpickling.load(opened)
    with pytest.raises(NothingToRead):
        read(tmp_path)
    assert not (tmp_path / "evil").exists()


def test_a_broken_dump_among_whole_ones_is_named_and_passed_over(tmp_path: Path) -> None:
    write(tmp_path, barrier_on_rank_0())
    (tmp_path / "nccl_trace_rank_2").write_bytes(pickle.dumps({"entries": [1]}, 2)[:-5])
    found = read(tmp_path)
    assert found.not_seen[0].startswith("nccl_trace_rank_2 is no dump that can be read")
    assert [finding.severity for finding in found.judge()] == ["error"]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_content_of_a_dump_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    junk = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
    junk |= st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
    dumps = copy.deepcopy(barrier_on_rank_0(2))
    damaged = data.draw(st.sampled_from([0, 1]))
    target = dumps[damaged]
    if data.draw(st.booleans()):
        target[data.draw(st.sampled_from(sorted(target)))] = data.draw(junk)
    else:
        one = target["entries"][data.draw(st.integers(0, 2))]
        one[data.draw(st.sampled_from(sorted(one)))] = data.draw(junk)
    folder = write(tmp_path_factory.mktemp("dumps"), dumps)
    found = read(folder)
    found.judge()
    [(_, evidence)] = found.attempts
    assert evidence.ranks[1 - damaged].groups, "the whole one is read"

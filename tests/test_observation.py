"""What it takes to follow a few ranks of a large world."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor import observation
from ddpdoctor.diagnose import prove_deadlock
from ddpdoctor.evidence import LOG_NAME, reader
from ddpdoctor.observation import Observation
from tests.postmortem.test_run_directory import log_of


def test_a_look_opens_the_logs_that_are_here_and_not_those_of_a_whole_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    really = reader.open_file
    monkeypatch.setattr(reader, "open_file", lambda path: opened.append(path) or really(path))
    logs = [tmp_path / LOG_NAME.format(rank=rank) for rank in (8, 9)]
    watched = Observation(tmp_path, 1000)
    watched.poll([])
    for log in logs:
        log.write_text(log_of(1, "barrier", 8))
        watched.poll([])
    assert opened == logs
    assert [rank.rank for rank in watched.here] == [8, 9]
    assert all(watched.evidence.ranks[rank].pid for rank in (8, 9))
    watched.close()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_proof_that_leaves_ranks_out_is_held_back_and_longer_for_those_of_other_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    now = 100.0
    monkeypatch.setattr(observation.time, "monotonic", lambda: now)
    watched = Observation(tmp_path, 3)
    for rank in (0, 1):
        lines = log_of(rank, "barrier" if rank else "all_reduce", 8, world=3).encode().splitlines()
        if elsewhere and rank:
            for line in lines:
                watched.tell(rank, line, 0.0)
        else:
            (tmp_path / LOG_NAME.format(rank=rank)).write_bytes(b"\n".join(lines) + b"\n")
    watched.poll([])
    watched.evidence.one_time = True
    proof = prove_deadlock(watched.evidence)
    assert proof is not None
    patience = observation.SETTLING_ELSEWHERE if elsewhere else observation.SETTLING
    held = []
    for wait in (0.0, patience - 0.01, patience + 0.01):
        now = 100.0 + wait
        held.append(watched.settled(proof) is None)
    assert held == [True, True, False]
    watched.close()

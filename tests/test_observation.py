"""What it takes to follow a few ranks of a large world."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    observation = Observation(tmp_path, 1000)
    observation.poll([])
    for log in logs:
        log.write_text(log_of(1, "barrier", 8))
        observation.poll([])
    assert opened == logs
    assert [rank.rank for rank in observation.here] == [8, 9]
    assert all(observation.evidence.ranks[rank].pid for rank in (8, 9))
    observation.close()

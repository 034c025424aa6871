"""A bar for whoever watches, and for nobody else."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.progress import progress_bar
from ddpdoctor.stack.resume import Epoch

MAIN = World(0, 0, 2, torch.device("cpu"), "gloo")


@pytest.mark.parametrize(("rank", "is_terminal"), [(0, True), (0, False), (1, True)])
def test_only_rank_0_on_a_terminal_shows_a_bar(
    rank: int,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(replace(MAIN, rank=rank)) as show:
        show.step(0.5)
        show.epoch(Epoch(3, 0.25, 0.125, 1e-3, 1.0, {}))
    out, err = capsys.readouterr()
    assert out == ""
    assert ("epoch 4: loss 0.2500, error 0.1250" in err) == (rank == 0 and is_terminal)
    assert bool(err) == (rank == 0 and is_terminal)

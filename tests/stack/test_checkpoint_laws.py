"""The laws of the checkpoint's writer: wherever it dies, and whenever somebody reads."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.process_group import World

LONE = World(0, 0, 1, torch.device("cpu"), None)

Limit = Callable[[], object]
"""What a process does to itself before it saves, so that it dies in the middle."""


def state(number: int, size: int = 2000) -> dict[str, Any]:
    """Make a checkpoint of which every part says the number."""
    return {"step": number, "weights": torch.full((size,), float(number))}


def number_of(path: Path) -> int:
    """Load a checkpoint, and return the number that all of it says."""
    read = checkpoint.load(path, LONE)
    assert bool((read["weights"] == read["step"]).all()), "parts of two checkpoints"
    return int(read["step"])


def at_each_step(look: Callable[[int], object]) -> None:
    """From now on call `look` before each call that this thread makes into C, with its number."""
    seen = 0

    def profile(frame: FrameType, event: str, called: object) -> None:
        nonlocal seen
        if event == "c_call":
            sys.setprofile(None)
            look(seen)
            seen += 1
            sys.setprofile(profile)

    sys.setprofile(profile)


def die_at_step(number: int) -> Limit:
    def die(step: int) -> None:
        if step == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: at_each_step(die)


def die_at_byte(number: int) -> Limit:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which Python ignores, to raise an OSError
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))

    return limit


def saved_in_a_child(number: int, path: Path, limit: Limit) -> bool:
    """Save in a process of its own; say whether it lived to the end of it."""
    child = os.fork()
    if child == 0:
        try:
            limit()
            checkpoint.save(state(number), path, LONE)
            sys.setprofile(None)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return status == 0


# A save of this state makes 138 calls into C, and a file of 9641 bytes (torch 2.13).
deaths = st.one_of(
    st.integers(0, 200).map(lambda step: ("step", step)),
    st.integers(0, 12_000).map(lambda byte: ("byte", byte)),
)


# Without the watch, whose log would count among the steps and the bytes.
@pytest.mark.distributed(nproc=1, backend=None, timeout=120, watch=False)
def test_however_often_its_writer_is_killed_a_checkpoint_is_whole(shared_path: Path) -> None:
    path = shared_path / "a.pt"
    died: set[bool] = set()

    @settings(max_examples=15, deadline=None)  # conftest's profile is not that of a rank
    @given(st.lists(deaths, min_size=1, max_size=4))
    def law(plan: list[tuple[str, int]]) -> None:
        checkpoint.save(state(0), path, LONE)
        kept = 0
        for number, (kind, at) in enumerate(plan, start=1):
            limit = die_at_step(at) if kind == "step" else die_at_byte(at)
            lived = saved_in_a_child(number, path, limit)
            died.add(not lived)
            found = number_of(path)
            assert found == number if lived else found in (kept, number)
            kept = found
        checkpoint.prune(shared_path, keep_last=1, best=None)
        assert [each.name for each in shared_path.iterdir()] == ["a.pt"]

    law()
    assert died == {True, False}, "the plans were all too early, or all too late"


def test_whoever_reads_at_any_step_of_a_save_finds_a_whole_checkpoint(tmp_path: Path) -> None:
    path, found = tmp_path / "a.pt", list[int]()
    checkpoint.save(state(1), path, LONE)
    before = sys.getprofile()
    at_each_step(lambda _: found.append(number_of(path)))
    try:
        checkpoint.save(state(2), path, LONE)
    finally:
        sys.setprofile(before)
    assert found == sorted(found), "the old one was seen after the new one"
    assert set(found) == {1, 2}


@settings(max_examples=100)
@given(size=st.integers(0, 5000), share=st.floats(0, 1, exclude_max=True))
def test_every_part_of_a_file_that_begins_like_a_checkpoint_is_refused(
    tmp_path_factory: pytest.TempPathFactory, size: int, share: float
) -> None:
    path = tmp_path_factory.mktemp("torn") / "a.pt"
    checkpoint.save(state(1, size), path, LONE)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match=re.escape(str(path))):
        checkpoint.load(path, LONE)


def test_a_file_that_is_overwritten_in_place_passes_for_whole(tmp_path: Path) -> None:
    """Why the writer may not write in place: torch.load does not notice a torn file by its sums."""
    old, new = tmp_path / "old.pt", tmp_path / "new.pt"
    checkpoint.save(state(1), old, LONE)
    checkpoint.save(state(2), new, LONE)
    half = old.stat().st_size // 2
    old.write_bytes(new.read_bytes()[:half] + old.read_bytes()[half:])
    assert {1.0, 2.0} <= set(checkpoint.load(old, LONE)["weights"].tolist())

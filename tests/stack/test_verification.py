"""Which files count as whole checkpoints."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.verification import verify_checkpoint

Write = Callable[[Any, Path], None]
STATE = {
    "step": 7,
    "weights": torch.arange(5000.0),
    "none": torch.zeros(0),
    "zeros": torch.zeros(9),
}


@pytest.fixture(autouse=True)
def _sums() -> Iterator[None]:
    before = torch.serialization.get_crc32_options()
    yield
    torch.serialization.set_crc32_options(before)


def with_sums(state: Any, path: Path) -> None:
    torch.save(state, path)


def without_sums(state: Any, path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    torch.save(state, path)


def in_the_old_format(state: Any, path: Path) -> None:
    torch.save(state, path, _use_new_zipfile_serialization=False)


every_format = pytest.mark.parametrize("write", [with_sums, without_sums, in_the_old_format])


@every_format
def test_a_whole_checkpoint_of_any_format_is_accepted(write: Write, tmp_path: Path) -> None:
    write(STATE, tmp_path / "a.pth")
    verify_checkpoint(tmp_path / "a.pth")


@every_format
@settings(max_examples=40)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_part_of_a_checkpoint_is_refused(
    write: Write, tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("torn") / "a.pth"
    write(STATE, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match=r"a\.pth") as caught:
        verify_checkpoint(path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_part_of_the_old_format_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    # Its pickles end in errors of the unpickler's own insides: IndexError, struct.error.
    in_the_old_format(STATE, tmp_path / "a.pth")
    content = (tmp_path / "a.pth").read_bytes()
    for length in range(0, 300, 3):
        (tmp_path / "a.pth").write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            verify_checkpoint(tmp_path / "a.pth")


def test_one_changed_bit_of_a_tensor_is_found_by_its_sum(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    with_sums(STATE, path)
    content = bytearray(path.read_bytes())
    content[content.index(torch.arange(100.0, 200.0).numpy().tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="Bad CRC-32"):
        verify_checkpoint(path)


def test_what_is_no_checkpoint_is_refused_with_the_reason(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.pth", "w") as archive:
        archive.writestr("letters/a.txt", "hello")
    (tmp_path / "text.pth").write_text("weights\n" * 100)
    (tmp_path / "empty.pth").touch()
    for name, reason in {
        "other.pth": "not one of torch.save",
        "text.pth": "of neither format",
        "empty.pth": "is empty",
        "absent.pth": "No such file",
    }.items():
        with pytest.raises(CheckpointError, match=reason):
            verify_checkpoint(tmp_path / name)

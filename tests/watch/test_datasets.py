"""What a dataset's list of files says of it, without a file being opened."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from torch.utils.data import Dataset, Subset

from ddpdoctor.watch.datasets import Fingerprint, deals_by_rank, layers, members

NAMES = ["c.txt", "a.txt", "b.txt"]


def listing(files: list[object]) -> tuple[str, str]:
    return Fingerprint(SimpleNamespace(files=files)).listings["files"]


@pytest.mark.parametrize(
    "files",
    [
        [Path("data", name) for name in NAMES],
        [PurePosixPath("/node-1/data", name) for name in NAMES],
        [f"elsewhere/data/{name}" for name in NAMES],
    ],
)
def test_paths_are_listed_like_their_names_wherever_they_lie(files: list[object]) -> None:
    assert listing(files) == listing([f"data/{name}" for name in NAMES])


def test_another_order_of_paths_is_the_same_set_of_files() -> None:
    order, files = listing([Path("data", name) for name in NAMES])
    sorted_order, same_files = listing([Path("data", name) for name in sorted(NAMES)])
    assert order != sorted_order
    assert files == same_files


def test_paths_with_labels_are_a_listing_and_numbers_are_none() -> None:
    labelled = Fingerprint(SimpleNamespace(files=[(Path("a"), 1), (Path("b"), 0)]))
    assert set(labelled.listings) == {"files"}
    assert Fingerprint(SimpleNamespace(files=[1, 2, 3])).listings == {}


class Blurred(Dataset[int]):
    """The samples of parts, changed on their way."""

    def __init__(self, *parts: Subset[int], length: int) -> None:
        self._length = length
        for number, part in enumerate(parts):
            setattr(self, f"part{number}", part)

    def __len__(self) -> int:
        return self._length


def test_what_changes_the_samples_of_a_subset_has_its_members() -> None:
    whole: Dataset[int] = range(9)  # type: ignore[assignment]
    part = Subset(Subset(whole, [1, 3, 5, 7]), [0, 2])
    changed = Blurred(part, length=2)
    assert layers(changed) == [changed, part, part.dataset, whole]
    assert members(layers(changed)) == [1, 5]
    viewed = Blurred(length=3)
    viewed.view = Subset(viewed, range(3))  # type: ignore[attr-defined]
    assert layers(viewed) == [viewed]
    for other in (Blurred(part, part, length=2), Blurred(part, length=4), Blurred(length=2)):
        assert layers(other) == [other]
        assert members(layers(other)) is None


@pytest.mark.parametrize(
    ("line", "deals"),
    [
        ("batch[rank::2]", True),
        ("batch[rank * 4 : 4 + rank * 4]", True),
        ("batch.chunk(2)[rank]", True),
        ("f'{batch[rank::2]}'", sys.version_info >= (3, 12)),
        ("f'[rank {rank}] step: {step}'", False),
        ("f'[rk{rank:02d}] has ended'", False),
        ("batch  # [rank 0: the first]", False),
        ('"""\n[rank 0: the first]\n"""', False),
    ],
)
def test_a_loop_slices_by_rank_in_code_and_not_in_words(
    tmp_path: Path, line: str, deals: bool
) -> None:
    file = tmp_path / "loop.py"
    file.write_text(f"def loop():\n    yield\n    {line}\n", "utf-8")
    found: dict[str, object] = {}
    exec(compile(file.read_text("utf-8"), str(file), "exec"), found)
    frame = found["loop"]().gi_frame  # type: ignore[operator]
    assert deals_by_rank([], None, frame) == deals

"""Folders of logs."""

from pathlib import Path

import pytest

from ddpdoctor.postmortem.log_folder import logs_in
from ddpdoctor.postmortem.material import NothingToRead
from ddpdoctor.postmortem.reading import read

BAD = 'Traceback (most recent call last):\n  File "/u/train.py", line 7, in main\nValueError: bad\n'
LOST = BAD.replace("ValueError: bad", "RuntimeError: Connection closed by peer")


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_torchruns_log_dir_tells_the_ranks_and_the_last_attempt(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "none_x1/attempt_0/0/stderr.log": BAD,
            "none_x1/attempt_1/0/stderr.log": LOST,
            "none_x1/attempt_1/0/stdout.log": "step 1\n",
            "none_x1/attempt_1/1/stderr.log": BAD,
            "none_x1/attempt_1/1/stdout.log": "",
        },
    )
    (finding,) = read(tmp_path).judge()
    assert (finding.title, finding.ranks) == ("exception", (1,))
    assert finding.consequences[0].startswith("rank 0 then raised RuntimeError")


@pytest.mark.parametrize("name", ["rank-{}.txt", "train.{}.log", "job12_{}.err", "{}.out"])
def test_a_number_that_tells_the_files_apart_is_the_rank(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name.format(0): LOST, name.format(1): BAD})
    (finding,) = read(tmp_path).judge()
    assert finding.ranks == (1,)


def test_a_number_that_may_be_anything_is_no_rank(tmp_path: Path) -> None:
    write(tmp_path, {"job-12.log": BAD, "job-12.err.txt": "", "notes.txt": "hello"})
    assert [rank for _, rank in logs_in(tmp_path)] == [None, None]
    (finding,) = read(tmp_path).judge()
    assert finding.ranks == ()


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "print()", "model.pt": "x"})
    with pytest.raises(NothingToRead, match="no dumps and no logs"):
        read(tmp_path)

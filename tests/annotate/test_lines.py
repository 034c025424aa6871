"""A silent error that was seen gets the line that the source shows, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.annotate import annotate
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Place

SCRIPT = """\
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, loss_of, optimizer):
    model = DDP(net)
    total = 0
    for x, y in loader:
        loss = loss_of(model(x), y)
        loss.backward()
        total += loss
    return total
"""
BACKWARD, CULPRIT = 9, 10


def seen(file: Path, code: str, line: int) -> Finding:
    """What the ranks were seen to do at this line."""
    place = RankPlace(ranks=(0, 1), place=Place(str(file), line, "train"), doing="runs")
    return Finding(
        code=code,
        title="retained-graph",
        severity="warning",
        certainty="proven",
        ranks=(0, 1),
        places=(place,),
        cause="graphs are kept",
        cure=Cure(text="detach"),
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT, encoding="utf-8")
    return file


def lines(finding: Finding) -> list[int]:
    return [each.place.line for each in finding.places if each.place is not None]


def test_the_line_that_lint_calls_by_the_same_code_comes_first(script: Path) -> None:
    (finding,) = annotate([seen(script, "DDP601", BACKWARD)])
    assert lines(finding) == [CULPRIT, BACKWARD]
    assert finding.places[0].ranks == (0, 1)


def test_a_line_that_is_known_already_is_not_told_twice(script: Path) -> None:
    (finding,) = annotate([seen(script, "DDP601", CULPRIT)])
    assert lines(finding) == [CULPRIT]


def test_what_lint_says_under_another_code_is_not_mixed_in(script: Path) -> None:
    (finding,) = annotate([seen(script, "DDP304", BACKWARD)])
    assert lines(finding) == [BACKWARD]


def test_a_file_that_is_gone_leaves_the_finding_as_it_was(tmp_path: Path) -> None:
    before = seen(tmp_path / "gone.py", "DDP601", BACKWARD)
    assert annotate([before]) == [before]


def test_of_two_such_lines_the_one_in_the_function_that_ran_is_told(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    other = SCRIPT.replace("def train", "def pretrain")
    file.write_text(f"{other}\n\n{SCRIPT}", encoding="utf-8")
    below = len(other.splitlines()) + 2
    (finding,) = annotate([seen(file, "DDP601", BACKWARD + below)])
    assert lines(finding) == [CULPRIT + below, BACKWARD + below]


SOME = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader):
    model = DDP(net)
    for x in loader:
        model(x).sum().backward()  # trains
        if {guard}:
            model.eval()
            with torch.no_grad():
                model(x)  # tries


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(torch.nn.BatchNorm1d(4), torch.ones(9, 3, 4))
"""


@pytest.mark.parametrize("title", ["rank-died", "deadlock"])
@pytest.mark.parametrize(
    ("guard", "code"), [("dist.get_rank() == 0", "DDP406"), ("len(x) > 2", "DDP400")]
)
def test_ranks_that_die_or_wait_in_a_forward_of_others_are_told_of_one_that_some_make(
    tmp_path: Path, guard: str, code: str, title: str
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SOME.format(guard=guard), encoding="utf-8")
    at = Place(str(file), 9, "train")
    met = seen(file, "DDP400", 9).model_copy(
        update={
            "title": title,
            "certainty": "proven",
            "places": (
                RankPlace(ranks=(0,), place=at, doing="in forward", phase="forward", stack=(at,)),
            ),
        }
    )
    (finding,) = annotate([met])
    assert (finding.code, finding.certainty) == (
        code,
        "evidence" if code == "DDP406" else "proven",
    )
    of_a_proof = any("for ever is proven" in each for each in finding.evidence)
    assert of_a_proof == (code == "DDP406" and title == "deadlock")
    assert (13 in lines(finding)) == (code == "DDP406")

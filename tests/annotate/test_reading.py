"""What lint is certain of is told of lines that were executed, and of no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.annotate.reading import certain, executed, unobserved
from ddpdoctor.evidence import Evidence, Place, RankEvidence

RESTORE = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def restore(net, path):
    {guard}
        net.load_state_dict(torch.load(path))  # loads
        net.eval()  # comes after

def main():
    dist.init_process_group("gloo")
    net = torch.nn.Linear(2, 2)
    model = DistributedDataParallel(net)
    restore(net, "best.pt")
    total = torch.zeros(2)
    dist.all_reduce(total)
    model(torch.ones(1, 2)).sum().backward()

if __name__ == "__main__":
    main()
"""
ALONE = "if dist.get_rank() == 0:"
LOADS = 7


def come_to(file: Path, line: int) -> Evidence:
    rank = RankEvidence(0, 2, 100)
    rank.ways[0] = (Place(str(file), 16, "<module>"), Place(str(file), line, "restore"))
    return Evidence(2, [rank, RankEvidence(1, 2, 101)])


@pytest.mark.parametrize(
    ("guard", "line", "codes"),
    [
        (ALONE, LOADS, ["DDP513"]),
        (ALONE, LOADS + 1, ["DDP513"]),
        (ALONE, 12, []),
        ("if True:", LOADS, []),
    ],
)
def test_what_is_certain_in_lines_that_ranks_have_come_to_is_told(
    tmp_path: Path, guard: str, line: int, codes: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(RESTORE.format(guard=guard), "utf-8")
    lines = executed(come_to(file, line))
    read = certain(list(lines))
    found = unobserved(lines, read, [])
    assert [(each.code, each.certainty) for each in found] == [(c, "certain") for c in codes]
    assert [[at.place.line for at in each.places] for each in found] == [[LOADS, LOADS - 1]] * len(
        codes
    ), "with the line that its evidence speaks of"
    assert unobserved(lines, read, found) == [], "what was told is not told again"

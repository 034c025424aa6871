"""What lint is certain of is told of lines that were executed, and of no others.

What it finds likely is told where it is why something was observed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.annotate.reading import executed, explained, explaining, read, unobserved
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Evidence, Place, RankEvidence, Stuck

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
    said = read(list(lines))
    found = unobserved(lines, said, [])
    assert [(each.code, each.certainty) for each in found] == [(c, "certain") for c in codes]
    told = [LOADS, LOADS - 1, LOADS - 1]
    lines_told = [[at.place.line for at in each.places] for each in found]
    assert lines_told == [told] * len(codes), "with the lines that its evidence speaks of"
    assert unobserved(lines, said, found) == [], "what was told is not told again"


WAITING = """\
import os, time, uuid
import torch.distributed as dist

def settle(ready):
    while not os.path.exists(ready):
        time.sleep(0.1)  # stands

def main():
    dist.init_process_group("gloo")
    name = [uuid.uuid4().hex]
    {shared}
    folder = os.path.join("runs", name[0])
    if dist.get_rank() == 0:
        os.makedirs(folder)
        open(os.path.join(folder, "READY"), "w").close()
    else:
        settle(os.path.join(folder, "READY"))
    dist.barrier()

if __name__ == "__main__":
    main()
"""
SHARED = "dist.broadcast_object_list(name, src=0)"
CALLS = 17


def observed(code: str, title: str, place: Place) -> Finding:
    return Finding(
        code=code,
        title=title,
        severity="warning",
        certainty="evidence",
        ranks=(1,),
        places=(RankPlace(ranks=(1,), place=place, doing="was idle here"),),
        cause="",
        cure=Cure(text=""),
    )


@pytest.mark.parametrize(
    ("shared", "line", "title", "codes"),
    [
        ("pass", CALLS, "stall", ["DDP514"]),
        ("pass", CALLS, "deadlock", ["DDP514"]),
        ("pass", CALLS, "exception", []),
        ("pass", CALLS + 1, "stall", []),
        (SHARED, CALLS, "stall", []),
    ],
)
def test_why_ranks_wait_is_told_if_it_was_read_where_one_stands(
    tmp_path: Path, shared: str, line: int, title: str, codes: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(WAITING.format(shared=shared), "utf-8")
    rank = RankEvidence(1, 2, 101)
    here = Place(str(file), 6, "settle")
    rank.stuck = Stuck(0.0, 9.0, (Place(str(file), line, "main"), here), here, ())
    evidence = Evidence(2, [RankEvidence(0, 2, 100), rank])
    found = explaining(evidence, read([str(file)]), [observed("DDP400", title, here)])
    assert [(each.code, each.certainty) for each in found] == [(code, "likely") for code in codes]


@pytest.mark.parametrize(
    ("said", "codes"), [("hash(name.split('-')[0])", ["DDP206"]), ("int(name[5:])", [])]
)
def test_why_ranks_have_other_data_is_told_by_the_source(
    tmp_path: Path, said: str, codes: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SPLIT.format(said=said), "utf-8")
    unlike = observed("DDP217", "unlike-datasets", Place(str(file), 9, "<module>"))
    found = explaining(Evidence(2, []), read([str(file)]), [unlike])
    assert [each.code for each in found] == codes
    assert explaining(Evidence(2, []), read([str(file)]), [*found, unlike]) == []


def test_what_is_read_of_the_same_at_the_same_line_gives_its_chain(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text((SAMPLES / "DDP207_last_piece_bad.py").read_text("utf-8"), "utf-8")
    here, there = (Place(str(each), 20, "main") for each in (file, tmp_path / "other.py"))
    uneven = [observed("DDP207", "uneven-batches", each) for each in (here, there)]
    told, unread = explained(Evidence(2, []), read([str(file)]), uneven)
    assert [at.place.line for at in told.places if at.place] == [20, 11, 32]
    assert unread == uneven[1]


SAMPLES = Path(__file__).parents[1] / "lint/samples"
SPLIT = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset
dist.init_process_group("gloo")
names = [f"case-{{number}}" for number in range(90)]
kept = [number for number, name in enumerate(names) if {said} % 5]
data = Subset(torch.zeros(90, 4), kept)
sampler = DistributedSampler(data)
net = DistributedDataParallel(torch.nn.Linear(4, 4))
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x in DataLoader(data, sampler=sampler):
        net(x).sum().backward()
"""

"""What the source adds: a suspicion that it confirms is a warning, and any other is not said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.annotate import annotate
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Place

METRIC = """\
import torch.distributed as dist


def mean_of_all(metric, world):
    dist.all_reduce(metric)
    return metric / {by}
"""
ELSEWHERE = """


def other(samples):
    return samples / dist.get_world_size()
"""
SHARED = """


def shared(value):
    return value.item() / float(dist.get_world_size())
"""
CONTRAST = """\
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def gather(x):
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    {back}
    return torch.cat(parts)


def main(net, batches, optimizer):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    for batch, labels in batches:
        z = model(batch)
        loss = F.cross_entropy(z @ gather(z).T, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def noted(file: Path, code: str, title: str, line: int, *, is_suspicion: bool = False) -> Finding:
    place = RankPlace(ranks=(0, 1), place=Place(str(file), line, ""), doing="runs")
    return Finding(
        code=code,
        title=title,
        severity="info",
        certainty="evidence",
        is_suspicion=is_suspicion,
        ranks=(0, 1),
        places=(place,),
        cause="it may be",
        cure=Cure(text="mend it"),
    )


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("len(samples)", []),
        ("dist.get_world_size()", ["warning"]),
        (f"len(samples){ELSEWHERE}", []),
        (f"1 * 1.0 / shared(metric){SHARED}", ["warning"]),
    ],
)
def test_a_sum_that_is_divided_by_the_ranks_is_a_mean_of_means(
    tmp_path: Path, by: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(METRIC.format(by=by), "utf-8")
    found = annotate([noted(file, "DDP309", "plain-average", 5, is_suspicion=True)])
    assert [each.severity for each in found] == said


BACK = """\
import argparse
import os

import torch
import torch.distributed as dist


def train(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = torch.nn.Linear(4, 1)
    for rows in torch.rand(9, 4, 4):
        loss = model(rows).square().mean() / {by}
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world


parser = argparse.ArgumentParser()
parser.add_argument("--world", type=int, default=2)
train(int(os.environ["RANK"]), parser.parse_args().world)
"""


@pytest.mark.parametrize(
    ("by", "said"),
    [
        *(("world", ["warning"]), ("dist.get_world_size()", ["warning"])),
        ("(rows.numel() * dist.get_world_size())", ["warning"]),
        *(("2", []), ("len(rows)", []), ("(rows.numel() * 2)", [])),
    ],
)
def test_a_loss_that_is_divided_by_the_ranks_is_told_and_by_a_weight_is_not(
    tmp_path: Path, by: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    scaled = BACK.replace("loss.backward", 'torch.amp.GradScaler("cpu").scale(loss).backward')
    for text in (BACK, scaled):
        file.write_text(text.format(by=by), "utf-8")
        found = annotate([noted(file, "DDP211", "averaged-twice", 13, is_suspicion=True)])
        assert [each.severity for each in found] == said
        lines = [each.place.line for of in found for each in of.places if each.place]
        assert lines == [13, 12] * bool(said)


SUMMED_LOSS = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(net, batches, optimizer):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    for batch, labels in batches:
        loss = torch.nn.functional.mse_loss(model(batch), labels)
        dist.all_reduce(loss)
        loss = loss / {by}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("by", "said"), [("dist.get_world_size()", ["warning"]), ("2", [])])
def test_a_divided_loss_is_told_where_it_was_summed_up_before(
    tmp_path: Path, by: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SUMMED_LOSS.format(by=by), "utf-8")
    own = noted(file, "DDP211", "batch-size-meaning", 13, is_suspicion=True)
    sums = RankPlace(ranks=(0, 1), place=Place(str(file), 11, ""), doing="sums it")
    found = annotate([own.model_copy(update={"places": (*own.places, sums)})])
    assert [each.severity for each in found] == said


PACED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def slow_down(optimizer, loss):
    for group in optimizer.param_groups:
        if {asks}:
            group["lr"] *= 0.5


def main(net, data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch, batch in enumerate(DataLoader(data, sampler=DistributedSampler(data))):
        loss = model(batch).mean()
        loss.backward()
        slow_down(optimizer, loss)
        optimizer.step()


main(torch.nn.Linear(2, 1), torch.randn(9, 2))
"""


@pytest.mark.parametrize(
    ("asks", "lines"), [("loss.item() > 1", [10, 21]), ("len(optimizer.param_groups) > 5", [21])]
)
def test_the_line_that_sets_a_learning_rate_of_a_ranks_own_comes_first(
    tmp_path: Path, asks: str, lines: list[int]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(PACED.format(asks=asks), "utf-8")
    (found,) = annotate([noted(file, "DDP300", "rates-apart", 21)])
    own = [at.place.line for at in found.places if at.place is not None]
    assert (own[0], own[-1]) == (lines[0], lines[-1])


GIVEN = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def run(rank, config):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"] * {by})
    for _ in range(9):
        model(torch.randn(4, 2)).mean().backward()
        optimizer.step()


torch.multiprocessing.spawn(run, args=({{"lr": 0.1}},), nprocs=2)
"""


@pytest.mark.parametrize(("by", "first"), [("(rank + 1)", 9), ("dist.get_world_size()", 12)])
def test_the_line_that_makes_an_optimizer_with_a_rate_of_a_ranks_own_comes_first(
    tmp_path: Path, by: str, first: int
) -> None:
    file = tmp_path / "train.py"
    file.write_text(GIVEN.format(by=by), "utf-8")
    (found,) = annotate([noted(file, "DDP300", "rates-apart", 12)])
    assert lines_of(found)[0] == first


LAUNCHED = """\
import torch
import torch.distributed as dist
from launching import launch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main(data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    for epoch, batch in enumerate(DataLoader(data, sampler=DistributedSampler(data))):
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        if {asks}:
            schedule.step()


launch(main)
"""


@pytest.mark.parametrize(("asks", "first"), [("loss.item() < 1", 18), ("epoch % 2", 16)])
def test_a_schedule_that_is_stepped_by_a_ranks_own_number_is_told_also_of_what_a_library_calls(
    tmp_path: Path, asks: str, first: int
) -> None:
    file = tmp_path / "train.py"
    file.write_text(LAUNCHED.format(asks=asks), "utf-8")
    (found,) = annotate([noted(file, "DDP300", "rates-apart", 16)])
    assert lines_of(found)[0] == first


NEVER = """\
from torch import Tensor, nn
import torch.distributed as dist


def main(model, optimizer):
    for parameter in model.parameters():
        if type(parameter) is Tensor:
            {call}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("dist.all_reduce(parameter.grad)", ["warning"]),
        ("print(parameter)", []),
        ("numpy.broadcast(parameter, parameter)", []),
    ],
)
def test_copies_are_told_where_the_source_has_a_line_that_would_exchange(
    tmp_path: Path, call: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(NEVER.format(call=call), "utf-8")
    found = annotate([noted(file, "DDP300", "nothing-exchanged", 9, is_suspicion=True)])
    assert [each.severity for each in found] == said


SHARED_OUT = """\
import torch.distributed as dist


def of_all(norm):
    {before}
    dist.all_reduce(norm)
    return norm
"""


@pytest.mark.parametrize(
    ("before", "severity"),
    [
        ("norm = norm / dist.get_world_size()", "info"),
        ("norm = norm.clone(); norm /= dist.get_world_size()", "info"),
        ("norm = norm.clone().div_(dist.get_world_size()).float()", "info"),
        ("norm = norm / 2", "warning"),
        ("norm = norm.clone()", "warning"),
    ],
)
def test_a_sum_of_what_was_divided_by_the_ranks_before_is_harmless(
    tmp_path: Path, before: str, severity: str
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SHARED_OUT.format(before=before), "utf-8")
    finding = noted(file, "DDP421", "reduced-twice", 6)
    seen = {"severity": "warning", "certainty": "proven"}
    (found,) = annotate([finding.model_copy(update=seen)])
    assert found.severity == severity
    assert ("divided by their number before" in found.cause) == (severity == "info")


SUMMED = """\
import torch.distributed as dist


def of_all(value):
    dist.{summed}
    return value.item() / {by}
"""


@pytest.mark.parametrize("summed", ["all_reduce(value)", "reduce(value, dst=0)"])
@pytest.mark.parametrize(("by", "severity"), [("dist.get_world_size()", "info"), ("3", "warning")])
def test_a_sum_that_is_divided_by_the_ranks_is_harmless_be_it_on_one_of_them(
    tmp_path: Path, summed: str, by: str, severity: str
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SUMMED.format(summed=summed, by=by), "utf-8")
    finding = noted(file, "DDP421", "reduced-twice", 5)
    seen = {"severity": "warning", "certainty": "proven"}
    (found,) = annotate([finding.model_copy(update=seen)])
    assert found.severity == severity


TOLD = """\
import math
import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.total, self.seen = 0.0, 0

    def add(self, value, count=1):
        self.total += value
        self.seen += count


def of_all(loss):
    dist.all_reduce(loss)
    return {given}


def main(losses, world, meter=Meter()):
    for loss in losses:
        value = of_all(loss.clone())
        {told}


main([torch.rand(1), torch.rand(1)], dist.get_world_size())
"""


@pytest.mark.parametrize(
    ("given", "told", "said"),
    [
        ("loss", "print(value.item())", ["warning"]),
        ("loss.item()", "meter.add(value)", ["warning"]),
        ("loss / 2", "print(value.item())", []),
        ("loss", "print(value.item() / world)", []),
        ("loss", "print(value.item() / math.log(2))", ["warning"]),
        ("loss", "print(100 * value.item())", ["warning"]),
        ("loss", "print(value.item() / math.sqrt(4))", []),
        ("loss", "print(0.5 * value.item())", []),
        ("loss.mul_(1 / dist.get_world_size())", "print(value.item())", []),
        ("loss.item()", "meter.add(value * len(loss), len(loss))", ["warning"]),
        ("loss.item()", "meter.add(value); print(meter.total / meter.seen)", ["warning"]),
        ("loss.item()", "meter.add(value * len(loss)); print(meter.total / 2)", []),
        ("loss.item()", "meter.add(value * (1 / dist.get_world_size()))", []),
        ("loss.item()", "meter.add(value); print(meter.total / meter.seen / world)", []),
        ("loss.item()", "print(value / len(list(range(world))))", []),
    ],
)
def test_a_sum_of_means_that_nothing_divides_is_told(
    tmp_path: Path, given: str, told: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(TOLD.format(given=given, told=told), "utf-8")
    finding = noted(file, "DDP309", "sum-of-means", 16, is_suspicion=True)
    way = tuple(Place(str(file), line, "") for line in (26, 22, 16))
    at = finding.places[0].model_copy(update={"stack": way})
    found = annotate([finding.model_copy(update={"places": (at,)})])
    assert [each.severity for each in found] == said
    file.write_text(file.read_text("utf-8").rpartition("\n\n\n")[0], "utf-8")
    assert annotate([finding]) == []  # nobody calls it here, and who does may divide


TOLD_BY_A_LIBRARY = """\
from accelerate import Accelerator


def main(accelerator, losses):
    for loss in losses:
        value = accelerator.reduce(loss, reduction="sum")
        print({told})


main(Accelerator(), [1.0, 2.0])
"""


@pytest.mark.parametrize(
    ("told", "said"), [("value.item()", ["warning"]), ("value.item() / 2", [])]
)
def test_a_sum_that_a_library_returns_is_followed(
    tmp_path: Path, told: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(TOLD_BY_A_LIBRARY.format(told=told), "utf-8")
    finding = noted(file, "DDP309", "sum-of-means", 6, is_suspicion=True)
    way = tuple(Place(str(file), line, "") for line in (10, 6))
    at = finding.places[0].model_copy(update={"stack": way})
    found = annotate([finding.model_copy(update={"places": (at,)})])
    assert [each.severity for each in found] == said


@pytest.mark.parametrize(
    ("back", "said"), [("pass", ["warning"]), ("parts[dist.get_rank()] = x", [])]
)
def test_what_was_gathered_for_a_loss_and_not_put_back_has_no_gradient(
    tmp_path: Path, back: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(CONTRAST.format(back=back), "utf-8")
    found = annotate([noted(file, "DDP316", "gathered-without-gradient", 9, is_suspicion=True)])
    assert [each.severity for each in found] == said


WHITENED = (Path(__file__).parents[1] / "lint" / "samples" / "DDP312_held_bad.py").read_text(
    "utf-8"
)


@pytest.mark.parametrize(
    ("taken", "said"),
    [("seen.mean(0)", ["warning"]), ("torch.rand(5)", []), ("self.middle.flip(0)", [])],
)
def test_a_buffer_that_differs_is_told_where_it_is_a_statistic_of_the_ranks_own_data(
    tmp_path: Path, taken: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(WHITENED.replace("seen.mean(0)", taken), "utf-8")
    line = 1 + WHITENED[: WHITENED.index("self.middle +=")].count("\n")
    found = annotate([noted(file, "DDP312", "own-statistics", line, is_suspicion=True)])
    assert [each.severity for each in found] == said


GATED = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Gate(nn.Linear):
    def forward(self, x):
        keep = super().forward(x).sigmoid()
        return x * (keep + (1 - keep) * torch.rand_like(keep))


def main(data, optimizer):
    dist.init_process_group("gloo")
    torch.manual_seed({seed})
    model = DistributedDataParallel(Gate(8, 8))
    for batch in DataLoader(data, sampler=DistributedSampler(data)):
        model(batch).mean().backward()
        optimizer.step()


main(torch.rand(64, 8), None)
"""


@pytest.mark.parametrize(("seed", "said"), [("3", ["warning"]), ("3 + dist.get_rank()", [])])
def test_numbers_alike_within_the_model_are_told_where_the_source_calls_them_noise(
    tmp_path: Path, seed: str, said: list[str]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(GATED.format(seed=seed), "utf-8")
    found = annotate([noted(file, "DDP205", "same-noise-everywhere", 11, is_suspicion=True)])
    assert [each.severity for each in found] == said


NUMBERED = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def number(words):
    return {{word: each for each, word in enumerate({words})}}


def main(rows, optimizer):
    dist.init_process_group("gloo")
    met = set()
    for row in open("rows.txt"):
        met.update(row.split())
    known = number(met)
    model = DistributedDataParallel(nn.EmbeddingBag(len(known), 8))
    for row in rows:
        model(torch.tensor([known[word] for word in row.split()])).mean().backward()
        optimizer.step()


main(open("more.txt"), None)
"""


@pytest.mark.parametrize(("words", "lines"), [("words", [8, 16, 13, 17]), ("sorted(words)", [17])])
def test_words_that_are_numbered_apart_are_told_with_the_lines_that_lint_names(
    tmp_path: Path, words: str, lines: list[int]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(NUMBERED.format(words=words), "utf-8")
    (found,) = annotate([noted(file, "DDP213", "numbered-apart", 17)])
    assert [each.place.line for each in found.places if each.place] == lines


LINES = """\
def loss_of(model, boxes, wanted):
    many = sum(len(each) for each in wanted)
    return (model(boxes) - wanted).abs().sum() / many


def thaw(model):
    for parameter in model.trunk.parameters():
        parameter.requires_grad = True


def train(model, batches, nothing, every):
    if every:
        for number, batch in enumerate(batches):
            if number == 3:
                thaw(model)
            held = nothing if (number + 1) % every else model.no_sync
            with held():
                model(batch).backward()


class Other:
    def thaw(self):
        pass


def other():
    Other().thaw()
"""


@pytest.mark.parametrize(
    ("title", "seen", "line"),
    [
        ("mean-of-means", 3, [2]),
        ("mean-of-means", 8, []),
        ("late-parameter", 8, [15]),
        ("late-parameter", 15, []),
        ("accumulation-off-by-one", 18, [16]),
        ("accumulation-off-by-one", 8, [16, 15]),
    ],
)
def test_the_line_that_made_it_so_is_told_beside_the_one_that_was_seen(
    tmp_path: Path, title: str, seen: int, line: list[int]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(LINES, "utf-8")
    (finding,) = annotate([noted(file, "DDP300", title, seen)])
    assert [each.place.line for each in finding.places if each.place] == [seen, *line]


LOADING = """\
def deal(accelerate, checkpoint, block, x, sampler):
    info = get_worker_info()
    config = accelerate.DataLoaderConfiguration(even_batches=False)
    sampler.set_epoch(1)
    with block.no_sync(): return checkpoint(block, x)
"""


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("iterable-not-sharded", 2),
        ("uneven-batches", 3),
        ("missing-set-epoch", 4),
        ("marked-ready-twice", 5),
        ("accumulation-syncs-every-step", 5),
        ("exception", None),
    ],
)
def test_the_call_that_a_person_would_change_is_named(
    tmp_path: Path, title: str, line: int | None
) -> None:
    file = tmp_path / "train.py"
    file.write_text(LOADING, "utf-8")
    (finding,) = annotate([noted(file, "DDP207", title, 1)])
    assert [each.place.line for each in finding.places[1:] if each.place] == [line] * bool(line)


ON_ONE = """\
import torch
import torch.distributed as dist


class Keeper:
    def _read(self):
        state = {nothing}
        if dist.get_rank() == 0:
            state = torch.load("last.pt")
        dist.barrier()
        return state

    def resume(self, net):
        state = self._read()
        net.load_state_dict(state["net"])
"""


def died_of(file: Path, line: int, cause: str, title: str = "exception") -> Finding:
    return noted(file, "DDP400", title, line).model_copy(
        update={"severity": "error", "certainty": "proven", "cause": cause, "raised": cause}
    )


def lines_of(finding: Finding) -> list[int]:
    return [at.place.line for at in finding.places if at.place is not None]


def test_what_was_nothing_on_some_ranks_is_told_with_the_condition_that_sets_it(
    tmp_path: Path,
) -> None:
    (file := tmp_path / "keep.py").write_text(ON_ONE.format(nothing="None"))
    cause = "TypeError: 'NoneType' object is not subscriptable"
    (finding,) = annotate([died_of(file, 15, cause)])
    assert lines_of(finding) == [15, 8, 9]


@pytest.mark.parametrize("cause", ["ValueError: too many values", "KeyError: 'net'"])
def test_of_any_other_exception_nothing_is_added(tmp_path: Path, cause: str) -> None:
    (file := tmp_path / "keep.py").write_text(ON_ONE.format(nothing="{}"))
    (finding,) = annotate([died_of(file, 15, cause)])
    assert lines_of(finding) == [15]


SPAWNED = """\
import torch.multiprocessing as mp


def at_the_top(rank):
    pass


def launch(world):
    def worker(rank):
        at_the_top(rank)

    def helper():
        def worker():
            return world

        return worker()

    mp.spawn({called}, nprocs=helper())
"""


@pytest.mark.parametrize(
    ("called", "said", "more"),
    [
        ("worker", "Can't pickle local object 'launch.<locals>.worker'", [9]),
        ("worker", "Can't pickle local object 'launch.<locals>.helper.<locals>.worker'", [13]),
        ("at_the_top", "cannot pickle '_io.TextIOWrapper' object", []),
    ],
)
def test_what_cannot_be_pickled_is_told_with_the_line_that_makes_it(
    tmp_path: Path, called: str, said: str, more: list[int]
) -> None:
    (file := tmp_path / "spawn.py").write_text(SPAWNED.format(called=called))
    title = "unpicklable-spawn-arguments"
    died = died_of(file, 18, "an argument cannot be pickled", title)
    (finding,) = annotate([died.model_copy(update={"raised": said})])
    assert lines_of(finding) == [18, *more]


KEPT = """\
import torch


def keep(path, net, optimizer):
    state = {
        "weights": net.state_dict(),
        "optimizer": optimizer,
    }
    torch.save(state, path)


def load(path, net):
    net.load_state_dict(torch.load(path))
"""


def test_what_was_saved_is_told_where_it_was_asked_of_the_wrapper(tmp_path: Path) -> None:
    file = tmp_path / "keep.py"
    file.write_text(KEPT, encoding="utf-8")
    finding = noted(file, "DDP508", "module-prefix", 13)
    saved = RankPlace(ranks=(0,), place=Place(str(file), 9, "keep"), doing="saved it")
    (told,) = annotate([finding.model_copy(update={"places": (*finding.places, saved)})])
    assert lines_of(told) == [13, 9, 6]


def test_ranks_that_never_join_are_told_with_the_option_that_decides_it(tmp_path: Path) -> None:
    (tmp_path / "options.py").write_text(
        "import argparse\n\n\ndef options():\n    parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--local_rank", type=int, default=-1)\n'
        "    return parser.parse_args()\n",
        "utf-8",
    )
    file = tmp_path / "train.py"
    file.write_text(
        "import torch.distributed as dist\nfrom options import options\n\n\n"
        "def main(data):\n    args = options()\n    if args.local_rank != -1:\n"
        '        dist.init_process_group("gloo")\n    for batch in data:\n        print(batch)\n',
        "utf-8",
    )
    (found,) = annotate([noted(file, "DDP115", "lone-copies", 9)])
    places = [(Path(at.place.file).name, at.place.line) for at in found.places if at.place]
    assert places == [("train.py", 7), ("train.py", 6), ("options.py", 6), ("train.py", 9)]


def test_what_cannot_be_pickled_is_told_with_its_line_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "schedules.py").write_text(
        "def constant(number):\n    def twice():\n        return 2 * number\n\n"
        "    return lambda step: twice()\n",
        "utf-8",
    )
    file = tmp_path / "train.py"
    file.write_text(
        "import torch.multiprocessing as mp\nfrom schedules import constant\n\n\n"
        "def main(worker):\n    mp.spawn(worker, args=(constant(3),), nprocs=2)\n",
        "utf-8",
    )
    raised = "AttributeError: Can't pickle local object 'constant.<locals>.<lambda>'"
    failed = noted(file, "DDP117", "unpicklable-spawn-arguments", 6)
    (found,) = annotate([failed.model_copy(update={"raised": raised})])
    places = [(Path(at.place.file).name, at.place.line) for at in found.places if at.place]
    assert places == [("train.py", 6), ("schedules.py", 5)]


SAVED = """\
import torch
import torch.distributed as dist


class Keeper:
    def __init__(self):
        self.seen = 0
        self.best = 0.0

    def see(self, score):
        self.seen += 1
        self.best = score


def main(model, batches, args, round, keeper=Keeper()):
    best = 0.0
    step = 0
    for number, batch in enumerate(batches):
        step += 1
        score = model(batch)
        is_better = score > best
        is_late = step > args.warmup
        if {test}:
            best = score
            torch.save(model.state_dict(), "best.pt")  # the save
    torch.save(model.state_dict(), "last.pt")  # the last


for epoch in range(9):
    main(None, [], None, epoch)
"""


@pytest.mark.parametrize(
    ("test", "is_told"),
    [
        ("score > best", True),
        ("step > args.warmup and score >= best", True),
        ("step >= args.steps and dist.get_rank() == 0", False),
        ("score > 0.5", False),
        ("number + 1 > args.warmup", False),
        ("round > args.warmup", False),
        ("keeper.seen >= args.warmup - 1", False),
        ("score * number > best", True),
        ("keeper.best < score", True),
        ("is_better", True),
        ("is_late", False),
    ],
)
def test_a_save_under_a_comparison_with_the_best_is_a_decision(
    tmp_path: Path, test: str, is_told: bool
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SAVED.format(test=test), encoding="utf-8")
    lines = SAVED.splitlines()
    (at,) = (n for n, each in enumerate(lines, 1) if each.endswith("# the save"))
    given = noted(file, "DDP214", "metric-not-reduced", at - 3, is_suspicion=True)
    save = RankPlace(
        ranks=(0,),
        place=Place(str(file), at, "main"),
        doing="saves",
        stack=(Place(str(file), len(lines), "<module>"), Place(str(file), at, "main")),
    )
    end = Place(str(file), at + 1, "main")
    last = save.model_copy(update={"place": end, "stack": (save.stack[0], end)})
    given = given.model_copy(update={"severity": "info", "places": (*given.places, last, save)})
    found = annotate([given])
    assert [each.severity for each in found] == ["warning"] * is_told
    saves = [each.place for of in found for each in of.places if each.doing == "saves"]
    assert saves == [save.place] * is_told


KEEPING = """\
import torch


def keep(model, is_best, name="last.pt"):
    if is_best:
        torch.save(model.state_dict(), name)
"""
HANDED = """\
from keeping import keep


def main(model, batches, args):
    best = 0.0
    for step, batch in enumerate(batches):
        score = model(batch)
        is_best = {test}
        best = max(score, best)
        keep(model, is_best)
"""


@pytest.mark.parametrize(
    ("test", "is_told"), [("score > best", True), ("step > args.warmup", False), ("True", False)]
)
def test_a_save_goes_by_the_comparison_that_its_function_is_given(
    tmp_path: Path, test: str, is_told: bool
) -> None:
    (keeping := tmp_path / "keeping.py").write_text(KEEPING, encoding="utf-8")
    (file := tmp_path / "train.py").write_text(HANDED.format(test=test), encoding="utf-8")
    given = noted(file, "DDP214", "metric-not-reduced", 7, is_suspicion=True)
    at = Place(str(keeping), 6, "keep")
    save = RankPlace(ranks=(0,), place=at, doing="saves", stack=(Place(str(file), 10, "main"), at))
    given = given.model_copy(update={"severity": "info", "places": (*given.places, save)})
    assert [each.severity for each in annotate([given])] == ["warning"] * is_told


LEVELS = """import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, level = dist.get_rank(), 1
    model = DistributedDataParallel(nn.Linear(4, 2))
    for x in torch.randn(9, 8, 4, generator=torch.Generator().manual_seed(rank)):
        out = model(x * level)
        out.mean().backward()
        right = (out.detach() > 0).float().mean()
        dist.reduce(right, dst=0)
        if {asked}:
            {done}


main()
"""


@pytest.mark.parametrize(
    ("asked", "done", "said"),
    [
        ("right.item() > 0.7", "level += 1", [15, 16]),
        ("right.item() > 0.7", "print(level)", []),
        ("rank == 0", "print(right.item())", []),
    ],
)
def test_what_one_rank_has_is_no_note_where_all_go_by_it(
    tmp_path: Path, asked: str, done: str, said: list[int]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(LEVELS.format(asked=asked, done=done), "utf-8")
    found = annotate([noted(file, "DDP416", "reduced-only-on-root", 15, is_suspicion=True)])
    lines = [each.place.line for of in found for each in of.places if each.place]
    assert lines == said
    assert [each.severity for each in found] == ["warning"] * bool(said)


SOME_LOSS = """\
import torch
from torch.distributed.nn import all_gather


def loss_of(told, kinds):
    everyone = torch.cat(all_gather(told))
    scores = told @ everyone.t()
    kept = []
    for part in everyone:
        total = part.sum()
    kept.append(scores)
    if not kinds.any():
        return {nothing}
    return scores[kinds].logsumexp(1).mean()
"""


@pytest.mark.parametrize(
    ("nothing", "lines"),
    [
        ("told.sum() * 0.0", [13, 6]),
        ("scores.sum() * 0.0", [6]),
        ("total * 0.0", [6]),
        ("kept[0].sum() * 0.0", [6]),
    ],
)
def test_the_early_return_that_leaves_out_what_was_gathered_is_told(
    tmp_path: Path, nothing: str, lines: list[int]
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SOME_LOSS.format(nothing=nothing), "utf-8")
    (finding,) = annotate([noted(file, "DDP418", "left-out-of-backward", 6)])
    assert [each.place.line for each in finding.places if each.place] == lines


STAMPED = """\
import time
import torch
import torch.distributed as dist


def main(net):
    dist.init_process_group("gloo")
    folder = f"runs/{time.time()}"
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), f"{folder}/best.pt")
    dist.barrier()
    net.load_state_dict(torch.load(f"{folder}/best.pt"))


main(torch.nn.Linear(2, 1))
"""


def test_a_file_that_each_rank_names_for_itself_is_told_with_the_line_that_names_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "train.py"
    file.write_text(STAMPED, "utf-8")
    (found,) = annotate([noted(file, "DDP514", "rank-divergent-path", 12)])
    lines = [each.place.line for each in found.places if each.place]
    assert {8, 12} <= {*lines}


PARTED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(net, batches):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        loss = model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        {step}


main(torch.nn.Linear(2, 1), torch.randn(9, 4, 2))
"""


@pytest.mark.parametrize(
    ("step", "code", "certainty"),
    [
        ("if loss.item() < 3: optimizer.step()", "DDP307", "evidence"),
        ("optimizer.step()", "DDP300", "proven"),
    ],
)
def test_models_that_part_are_told_with_the_one_thing_that_lint_names(
    tmp_path: Path, step: str, code: str, certainty: str
) -> None:
    file = tmp_path / "train.py"
    file.write_text(PARTED.format(step=step), "utf-8")
    finding = noted(file, "DDP300", "silent-divergence", 8)
    seen = {"severity": "error", "certainty": "proven"}
    (found,) = annotate([finding.model_copy(update=seen)])
    assert (found.code, found.severity, found.certainty) == (code, "error", certainty)
    assert found.cause.startswith(finding.cause)
    assert next(each.place.line for each in found.places if each.place) == (
        14 if code == "DDP307" else 8
    )

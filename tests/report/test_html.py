"""The page that people open: what it tells, that it does nothing else, and how it looks."""

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from browser import CHROMIUM, SCHEMES, WIDTHS, browser
from hypothesis import example, given
from hypothesis.strategies import floats, lists
from report_samples import VERDICTS, report_of
from run_samples import SOURCE, a_crowd, blocked_world, deadlock, evil_report, report, script

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.check.telling import told as of_check
from ddpdoctor.evidence import ExceptionRecord, Fate, Place, Training, Wrapper
from ddpdoctor.evidence.records import Warned
from ddpdoctor.report.as_html.lanes import lanes
from ddpdoctor.report.as_html.training import training
from ddpdoctor.report.drawing import Axis, curves
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt, Metric
from ddpdoctor.report.model import Group, Report, render
from tests.thorough import first_of

EMPTY = ("meta", "input")


class Page(HTMLParser):
    """Which elements are open, which there were, and the text of each section by its id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def told(page: str) -> str:
    """The text of a page, on one line, without its style and script."""
    page = re.sub(r"<(style|script|title)>.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("&#x27;", "'").split())


def parted(folder: Path, size: int) -> Report:
    """`size` ranks, of which one waits in a barrier that the others never call."""
    file = script(folder)
    others = tuple(range(1, size))
    places = (
        RankPlace(ranks=(0,), place=Place(file, 4, "save"), doing="barrier #9", waits_for=others),
        RankPlace(ranks=others, place=Place(file, 1, "fit"), doing="all_reduce #9", waits_for=(0,)),
    )
    return of_job(
        "run",
        [Attempt.of("attempt-0-34729", blocked_world(file, size))],
        [deadlock(file, places=places), *many(file)],
        subject=("torchrun", "train.py"),
        status=-9,
        ended_by="doctor",
        proven_after=0.7,
    )


def many(file: str) -> list[Finding]:
    return [
        deadlock(file, code="DDP201", severity="warning", certainty="evidence", places=(), cause=c)
        for c in ("The sampler is built once.", "The loss is a mean of means.")
    ]


def test_the_verdict_stands_first_and_the_story_follows_it(tmp_path: Path) -> None:
    page = told(render(parted(tmp_path, 4), "html"))
    verdict = page.index("stands under if rank == 0:")
    story = page.index("ranks 0-3 did the same until here: all_reduce #8")
    assert verdict < page.index("ranks 0-3 came to optimizer step 8") < story
    assert story < page.index("rank 0 called barrier #9, and never came out of it")
    assert page.index("What happened") < page.index("Each rank") < page.index("3 findings")
    assert "attempt-0-34729" not in page


def test_each_party_is_shown_with_its_stack_and_its_line_marked(tmp_path: Path) -> None:
    page = render(parted(tmp_path, 4), "html")
    sides = re.findall(r"<article.*?</article>", page, re.DOTALL)
    assert [told(side).split(",")[0] for side in sides] == [
        "rank 0 barrier #9",
        "ranks 1-3 all_reduce #9",
    ]
    assert ["main" in side for side in sides] == [True, True]
    marked = [told(mark) for side in sides for mark in re.findall("<mark>.*?</mark>", side)]
    assert marked == ["this line: 4 dist.barrier()", "this line: 1 def save_checkpoint(model):"]
    assert SOURCE.splitlines()[3].strip() in told(sides[0])


def test_an_arrow_leads_from_who_waits_to_who_is_waited_for(tmp_path: Path) -> None:
    page = render(parted(tmp_path, 4), "html")
    (arrows,) = re.findall(r'<ul class="waits".*?</ul>', page)
    assert [told(each) for each in re.findall("<li>.*?</li>", arrows)] == [
        "rank 0 waits in barrier #9 for ranks 1-3",
        "ranks 1-3 wait in all_reduce #9 for rank 0",
    ]
    alone = deadlock(places=(RankPlace(ranks=(0,), place=None, doing="raised ValueError"),))
    assert '<ul class="waits"' not in render(report(alone), "html")


def test_a_page_says_how_its_trace_is_opened(tmp_path: Path) -> None:
    made = parted(tmp_path, 2).model_copy(update={"run_dir": "reports/run 1"})
    said = "ddpdoctor diagnose 'reports/run 1' --format perfetto -o trace.json"
    assert said in told(render(made, "html"))
    assert "perfetto" not in told(render(parted(tmp_path, 2), "html"))


def test_a_collective_is_linked_across_ranks_and_one_that_some_never_call_stands_out(
    tmp_path: Path,
) -> None:
    page = render(parted(tmp_path, 4), "html")
    links = re.findall(r'<path class="link".*?<title>(.*?)</title>', page)
    lone = re.findall(r'<path class="lone".*?<title>(.*?)</title>', page)
    assert links[-1] == "all_reduce #8 of group 0, called by 4 ranks"
    assert lone == [
        "barrier #9 of group 0, called by 1 rank",
        "all_reduce #9 of group 0, called by 3 ranks",
    ]


def test_what_is_late_has_the_others_wait_for_it(tmp_path: Path) -> None:
    """Rank 3 comes to every call 0.2 s after the others: they wait, and it does not."""
    (attempt,) = parted(tmp_path, 4).attempts
    drawn = lanes(attempt, ())
    tops = re.findall(r'class="wait"[^>]* y="(\d+)"', drawn)
    assert [tops.count(top) for top in sorted({*tops}, key=int)] == [8, 8, 8]


def test_thousands_of_ranks_are_folded_with_the_few_on_top(tmp_path: Path) -> None:
    (attempt,) = parted(tmp_path, 400).attempts
    names = re.findall(r'<li data-ranks="(.*?)"', lanes(attempt, {0}))
    assert names[0] == "0-0"
    assert names[1].startswith("1-")
    assert len(names) < 40
    ends = [tuple(map(int, name.split("-"))) for name in names]
    assert sum(last - first + 1 for first, last in ends) == 400


def test_what_fares_like_no_other_is_on_top_though_small_findings_name_every_rank(
    tmp_path: Path,
) -> None:
    world = blocked_world(script(tmp_path), 400)
    world.ranks[333].fate = Fate(333, world.ranks[333].pid, 7, None, 112.5)
    drawn = lanes(Attempt.of("a", world), range(400))
    names = re.findall(r'<li data-ranks="(.*?)"', drawn)
    assert "333-333" in names
    assert "0-0" in names


def test_blamed_ranks_that_fare_all_the_same_are_folded_and_a_few_are_not(tmp_path: Path) -> None:
    (attempt,) = parted(tmp_path, 400).attempts
    for blamed, alone in ((range(400), 1), ((0, 7, 8, 9), 4)):
        names = re.findall(r'<li data-ranks="(\d+)-(\d+)"', lanes(attempt, blamed))
        assert sum(first == last for first, last in names) == alone
        assert len(names) - alone <= 24


def test_an_optimizer_step_is_linked_across_ranks(tmp_path: Path) -> None:
    (attempt,) = parted(tmp_path, 4).attempts
    drawn = lanes(attempt, ())
    links = re.findall(r'<path class="step" d="M([^"]*L[^"]*)"><title>(.*?)</title>', drawn)
    assert len(links) == 4
    way, said = links[-1]
    assert said == "optimizer step 8, the last 0.20 s after the first"
    along = [float(point.split()[0]) for point in way.split("L")]
    assert along[0] == along[2] < along[3], "rank 3 comes later"


def test_what_only_read_the_source_tells_no_story() -> None:
    page = render(Report(command="lint", verdict="", findings=(deadlock(),)), "html")
    assert "What happened" not in page
    assert "What happened" in render(report(deadlock()), "html")


def test_the_gravest_is_opened_first_and_a_closed_one_says_where_it_is() -> None:
    grave = deadlock()
    mild = tuple(
        grave.model_copy(update={"code": f"DDP60{n}", "severity": "warning"}) for n in range(3)
    )
    page = render(Report(command="lint", verdict="", findings=(*mild, grave)), "html")
    told = re.findall(r'<details class="finding (\w+)"( open)?>\n<summary>(.*)</summary>', page)
    assert [(severity, bool(is_open)) for severity, is_open, _ in told] == [
        ("error", True),
        ("warning", True),
        ("warning", True),
        ("warning", False),
    ]
    assert grave.place is not None
    assert all(f"{grave.place.file}:{grave.place.line}</small>" in line for *_, line in told)
    cause = "under <code>if rank == 0:</code> (train.py:2)"
    assert all(cause in line for *_, line in told), "a closed one says why, too"
    assert 'placeholder="words, a code, a file"' in page
    assert 'placeholder="words, a code, rank 12"' in render(report(grave, mild[0]), "html")


def test_what_stands_in_backticks_is_code_in_every_cell() -> None:
    asks = RankPlace(ranks=(0,), place=None, doing="`rank` asks")
    found = deadlock().model_copy(update={"places": (*deadlock().places, asks)})
    rows = Group(title="it", columns=("is", "what"), rows=(("x", "`DDP(model)`"),))
    page = render(Report(command="check", verdict="", findings=(found,), groups=(rows,)), "html")
    page = page.partition('<details id="issue"')[0]
    assert "<code>rank</code> asks" in page
    assert "<code>DDP(model)</code>" in page
    assert "`" not in page.partition("</style>")[2].partition("<script>")[0]


def test_a_rank_that_stood_still_before_is_blocked_after_what_it_did(tmp_path: Path) -> None:
    world = blocked_world(script(tmp_path), 2)
    first = world.ranks[0]
    assert first.stuck is not None
    # The heartbeat saw it idle, before it saved and then called what it never came out of.
    first.stuck = replace(first.stuck, since=108.0, waiting=())
    made = of_job("run", [Attempt.of("a", world)], [deadlock()], subject=("x",))
    page = told(render(made, "html"))
    assert page.index("rank 0 saved last.pt") < page.index("rank 0 blocked in a call")


def test_a_rank_is_blocked_in_a_call_since_it_was_issued_at_the_earliest(tmp_path: Path) -> None:
    """Two looks may have seen it in the same line of two steps."""
    world = blocked_world(script(tmp_path), 2)
    for rank in world.ranks:
        assert rank.stuck is not None
        rank.stuck = replace(rank.stuck, since=108.0)
    lives = Attempt.of("a", world).ranks
    blocked = [[round(m.at, 3) for m in line.marks if m.kind == "blocked"] for line in lives]
    assert blocked == [[9.1], [9.1]]


def test_a_rank_is_blocked_since_its_own_line_called_and_else_since_it_was_seen(
    tmp_path: Path,
) -> None:
    world = blocked_world(script(tmp_path), 2)
    stuck = world.ranks[1].stuck  # it waits for a handle, in another line
    assert stuck is not None
    world.ranks[1].stuck = replace(stuck, place=Place("train.py", 5, "fit"))
    lives = Attempt.of("a", world).ranks
    blocked = [[round(m.at, 3) for m in line.marks if m.kind == "blocked"] for line in lives]
    assert blocked == [[9.1], [9.5]]


def test_the_story_says_from_which_lines_ranks_met_and_who_ended_them(tmp_path: Path) -> None:
    file = script(tmp_path)
    world = blocked_world(file, 3)
    world.ranks[0].collectives[7] = replace(
        world.ranks[0].collectives[7], place=Place(file, 4, "save")
    )
    world.ranks[1].warnings = [Warned("UserWarning", "a `tensor`", Place(file, 1, "fit"), 109.0)]
    made = of_job("run", [Attempt.of("a", world)], [deadlock(file)], subject=("x",))
    page = told(render(made.model_copy(update={"ended_by": "doctor"}), "html"))
    assert (
        "all_reduce #8 is the last in which ranks 0-2 met, from several lines: "
        "rank 0 at train.py:4 , ranks 1, 2 at train.py:1" in page
    )
    assert "did the same" not in page
    assert "rank 1 warned: UserWarning: a tensor at train.py:1" in page
    assert "ranks 0-2 were ended by the doctor" in page
    assert "by the doctor" not in told(render(made, "html"))


def test_what_is_said_of_other_lines_stands_apart_from_the_stack(tmp_path: Path) -> None:
    file = script(tmp_path)
    asks = RankPlace(ranks=(0,), place=Place(file, 2, "save"), doing="`rank` asks")
    waits, *others = deadlock(file).places
    waits = waits.model_copy(update={"place": Place(file, 4, "save")})
    found = deadlock(file).model_copy(update={"places": (waits, asks, *others)})
    attempt = Attempt.of("a", blocked_world(file, 3))
    page = render(of_job("run", [attempt], [found], subject=("x",)), "html")
    stack, besides = re.findall(r'<[ou]l class="stack".*?</[ou]l>', page)[:2]
    assert "train.py:5" in stack
    assert "train.py:2" not in stack
    assert "train.py:2" in besides
    assert "<small><code>rank</code> asks</small>" in besides


def test_where_nobody_parted_nothing_is_told_of_how_far_all_went(tmp_path: Path) -> None:
    file = script(tmp_path)
    world = blocked_world(file, 3)
    for rank in world.ranks:
        rank.stuck, rank.fate = None, Fate(rank.rank, rank.pid, 0, None, 112.5)
    report = of_job("run", [Attempt.of("a", world)], [deadlock(file)], subject=("x",))
    page = told(render(report, "html"))
    assert "did the same until here" not in page
    assert "ranks 0-2 joined the process group" in page


def test_a_folder_that_a_library_makes_is_not_drawn_as_what_the_job_did(tmp_path: Path) -> None:
    page = render(parted(tmp_path, 2), "html")
    assert "saved last.pt" in page
    assert "torchinductor" not in page


def test_steps_are_drawn_with_the_time_of_one_and_the_skew_between_ranks(tmp_path: Path) -> None:
    page = render(parted(tmp_path, 4), "html")
    names = re.findall(r'background:var\(--.\)"></i>(.*?)</li>', page)
    lines = re.findall(r"<polyline[^>]*>((?:<circle.*?</circle>)*)", page)
    said = [re.findall("<title>(.*?)</title>", line) for line in lines]
    assert list(zip(names, said, strict=True))[3:] == [
        ("time of a step", ["step 2: 1000.0 ms", "step 4: 1000.0 ms", "step 8: 1000.0 ms"]),
        ("rank skew", [f"step {n}: 200.0 ms" for n in (1, 2, 4, 8)]),
        ("ranks 0-2", ["1: 1", "2: 0.5", "3: 0.333333"]),
        ("rank 3", ["1: 1.2", "2: 0.7", "3: 0.533333"]),
    ]


def test_the_loss_is_drawn_between_the_lowest_and_the_highest_rank(tmp_path: Path) -> None:
    page = render(parted(tmp_path, 4), "html")
    (drawn,) = re.findall(r"<h3>Loss at train.py:1, by step</h3>(.*?)</svg>", page)
    lines = re.findall(r"<polyline[^>]*>((?:<circle.*?</circle>)*)", drawn)
    assert [re.findall("<title>(.*?)</title>", line) for line in lines] == [
        ["step 1: 4.05", "step 2: 2.05", "step 3: 1.4", "step 4: 1.05"],
        ["step 1: 4", "step 2: 2", "step 3: 1.33333", "step 4: 1"],
        ["step 1: 4.2", "step 2: 2.2", "step 3: 1.53333", "step 4: 1.2"],
    ]
    assert "not finite on rank 1, first at step 3" in drawn


def test_what_failed_is_not_told_as_done(tmp_path: Path) -> None:
    world = blocked_world(script(tmp_path), 2)
    first = world.ranks[0]
    first.files[-1] = replace(first.files[-1], error="RuntimeError: no space left")
    made = of_job("run", [Attempt.of("a", world)], [deadlock()], subject=("x",))
    page = told(render(made, "html"))
    assert "rank 0 failed to save last.pt" in page
    assert "saved last.pt" not in page


def test_what_took_no_time_is_drawn_nevertheless(tmp_path: Path) -> None:
    world = blocked_world(script(tmp_path), 2)
    first = world.ranks[0]
    first.files[-1] = replace(first.files[-1], ended=first.files[-1].begun)
    page = render(of_job("run", [Attempt.of("a", world)], [], subject=("x",)), "html")
    widths = re.findall(r'<rect class="file"[^>]* width="([\d.]+)"', page)
    assert len(widths) == 2
    assert all(float(width) > 0 for width in widths), "SVG leaves out what has no width"


def test_where_nothing_parted_there_is_no_parting_to_go_to(tmp_path: Path) -> None:
    world = blocked_world(script(tmp_path), 2)
    assert "data-parting=" in lanes(Attempt.of("a", world), ())
    for rank in world.ranks:
        rank.fate = Fate(rank.rank, rank.pid, 0, None, 112.5)
    assert "data-parting=" not in lanes(Attempt.of("a", world), ())


def test_words_below_curves_do_not_lie_upon_each_other() -> None:
    """Steps 1, 2, 4, ... are close to each other at the left end."""
    points = [(2.0**n, 1.0, "") for n in range(11)]
    along, up = Axis([x for x, _, _ in points], str), Axis([0, 1], str)
    drawn = curves("", {"one": points}, along, up, (0, ""))
    below = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="middle"', drawn)]
    assert len(below) >= 3
    assert all(later - earlier >= 60 for later, earlier in pairwise(below))
    assert ">1024.0<" in drawn


def test_a_rank_is_not_blocked_in_what_it_came_out_of(tmp_path: Path) -> None:
    """A heartbeat may have seen it idle last in a call that was its last but one, or had raised."""
    world = blocked_world(script(tmp_path), 3)
    well, raised, late = world.ranks
    well.fate = Fate(0, well.pid, 0, None, 112.5)
    raised.exceptions = [ExceptionRecord("RuntimeError", "closed", (), 109.4, None)]
    late.exceptions = [ExceptionRecord("RuntimeError", "timed out", (), 110.0, None)]
    (lives,) = of_job("run", [Attempt.of("a", world)], [], subject=("x",)).attempts
    blocked = [[m.until for m in line.marks if m.kind == "blocked"] for line in lives.ranks]
    assert blocked == [[], [], [10.0]]
    assert [line.fate for line in lives.ranks] == [
        "ended well",
        "raised RuntimeError, then ended",
        "blocked in all_reduce #9, raised RuntimeError, then ended",
    ]


def test_the_last_look_at_a_rank_that_leaves_is_at_no_step(tmp_path: Path) -> None:
    world = blocked_world(script(tmp_path), 2)
    for rank in world.ranks:
        rank.training, rank.exiting = {(0, 0): Training(0, 0, 7, {}, 0)}, 112.0
    assert [each.step for each in Attempt.of("a", world).steps] == [1, 2, 4]


def test_parameters_that_part_are_told_with_the_step_since_when_and_equal_ones_are_not(
    tmp_path: Path,
) -> None:
    page = told(render(parted(tmp_path, 4), "html"))
    assert "1 parameter not the same on all ranks" in page
    assert "head.bias same same 2 versions 2 versions" in page
    assert "head.weight" not in page


def test_models_are_not_compared_with_each_other(tmp_path: Path) -> None:
    both = blocked_world(script(tmp_path), 2)
    for rank in both.ranks:
        rank.samples = [
            replace(sample, wrapper=model, optimizer=model, parameters={"0.weight": f"w{model}"})
            for sample in rank.samples
            for model in (0, 1)
        ]
    attempt = Attempt.of("attempt-0", both)
    assert attempt.parameters_apart == 0
    both.ranks[0].samples[-1] = replace(
        both.ranks[0].samples[-1], parameters={"0.weight": "another"}
    )
    (parted,) = Attempt.of("attempt-0", both).parameters
    assert parted.name == "0.weight (model 1)"


def test_ranks_that_share_no_model_are_not_compared(tmp_path: Path) -> None:
    """Two rows of a grid: 0 and 1 share theirs, 2 and 3 another."""
    world = blocked_world(script(tmp_path), 4)
    for rank in world.ranks:
        row = rank.rank // 2
        shared = (2 * row, 2 * row + 1)
        rank.wrappers = [Wrapper(None, ("w",), False, False, ranks=shared)]
        rank.samples = [replace(each, parameters={"w": f"{row}"}) for each in rank.samples]
    assert Attempt.of("a", world).parameters_apart == 0
    last = world.ranks[3].samples
    last[-1] = replace(last[-1], parameters={"w": "another"})
    (apart,) = Attempt.of("a", world).parameters
    assert apart.versions[-1] == 2


def test_a_parameter_that_two_optimizers_look_at_is_one(tmp_path: Path) -> None:
    world = blocked_world(script(tmp_path), 2)
    for rank in world.ranks:
        rank.samples += [replace(sample, optimizer=1) for sample in rank.samples]
    attempt = Attempt.of("attempt-0", world)
    assert attempt.parameters_apart == 1
    assert [each.name for each in attempt.parameters] == ["head.bias"]


@given(lists(floats(-1e9, 1e9, allow_nan=False), min_size=2, max_size=9))
@example([-5.0, -5.0])
@example([-10.0, -8.0])
@example([-5.0, 5.0])
@example([0.0, 0.0])
@example([-1e308, 1e308])
@example([1.5e308, 1.7e308])
def test_any_metric_is_drawn_within_its_picture(values: list[float]) -> None:
    attempt = Attempt(
        name="attempt-0",
        world_size=1,
        ranks=(),
        metrics=(Metric(ranks=(0,), values=tuple(values)),),
    )
    heights = re.findall(r'cy="([-0-9.]+)"', "".join(training(attempt)))
    assert len(heights) == len(values)
    assert all(0 <= float(height) <= 300 for height in heights)


def test_files_have_a_lane_each(tmp_path: Path) -> None:
    page = render(parted(tmp_path, 2), "html")
    (drawn,) = re.findall(r'<div class="files">.*?</div>', page)
    assert re.findall("<li>(.*?)</li>", drawn) == ["saved last.pt"]
    assert re.findall("<title>(.*?)</title>", drawn) == ["9.00 s: rank 0 saved last.pt"]


def test_the_page_is_inert_but_for_our_own_script(tmp_path: Path) -> None:
    page = render(evil_report(tmp_path), "html")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    ours = resources.files("ddpdoctor.report.as_html").joinpath("page.js").read_text()
    assert scripts == [ours]
    digest = base64.b64encode(hashlib.sha256(ours.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert Page(page).open == []
    assert Page(page).seen.count("script") == 1


def test_a_hundred_thousand_findings_make_a_page_that_opens(tmp_path: Path) -> None:
    finding = deadlock(script(tmp_path), evidence=("word " * 100,) * 20)
    made = report().model_copy(update={"findings": (finding,) * 100_000})
    page = render(made, "html")
    assert len(page.encode()) < 5_000_000
    assert "100000 findings" in page
    assert "99800" in page


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_ink_can_be_read_on_its_paper(scheme: int) -> None:
    style = resources.files("ddpdoctor.report.as_html").joinpath("page.css").read_text()
    palette = dict(re.findall(r"--(\w+): (#\w+)", style.split("prefers-color-scheme")[scheme]))
    inks = ("ink", "dim", "error", "warning", "info", "well")
    for ink, paper in itertools.product(inks, ("paper", "card")):
        assert contrast(palette[ink], palette[paper]) >= 4.5, (ink, paper)
    assert contrast(palette["ink"], palette["mark"]) >= 4.5
    for bar in ("paused", "wait", "blocked", "file"):
        assert contrast(palette[bar], palette["life"]) >= 1.2, bar


def contrast(one: str, other: str) -> float:
    """As WCAG 2 counts it."""

    def light(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        red, green, blue = (
            p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((light(one), light(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return a_crowd(tmp_path_factory.mktemp("crowd"))


@pytest.mark.thorough
def test_a_page_of_ten_thousand_ranks_and_a_hundred_thousand_findings_is_not_too_large(
    crowd: Report,
) -> None:
    page = render(crowd, "html")
    assert len(page.encode()) < 5_000_000
    assert "100001 findings" in page


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("half", first_of([0, 1]))
def test_in_a_browser_nothing_overflows_and_all_that_can_be_clicked_works(
    tmp_path: Path, crowd: Report, half: int
) -> None:
    """Its pictures are left beside the pages: of each page at each width, light or dark in turn."""
    pages = {
        "two": parted(tmp_path, 2),
        "many": parted(tmp_path, 200),
        "thousands": crowd,
        "evil": evil_report(tmp_path),
        "check": of_check(report_of(*VERDICTS)),
    }
    for name, made in pages.items():
        (tmp_path / f"{name}.html").write_text(render(made, "html"), encoding="utf-8")
    with browser(tmp_path) as window:
        for number, (name, width) in enumerate(itertools.product(pages, WIDTHS)):
            scheme = SCHEMES[(number + half) % 2]
            shown = f"{name}-{width}-{scheme}"
            window.show(tmp_path / f"{name}.html", width, scheme)
            told = window.look()
            assert told.pop("overflow") <= 0, shown
            assert told.pop("cut") == 0 or width < 500, shown
            assert {*told} == {"small", "spoken", "torn", "pale", "console"}
            assert [each for each in told.values() if each] == [], shown
            window.picture(tmp_path / f"{shown}.png")
            used = window.use() if scheme == "dark" else {"copied": "copied"}
            assert used["copied"] == "copied", shown
            if used.get("searched") and name == "two":
                assert (used["zoomed"], used["whole"], used["parting"]) == (True, True, True)
                assert "dist.barrier()" in used["detail"]
                assert "main" in used["detail"], "the way there too"
                assert used["detail"].startswith("rank 0, 9.10 s: blocked in barrier #9")
                assert used["next"].startswith("rank 1, 9.10 s: blocked in all_reduce #9")
                assert used["before"] == used["detail"]
                assert used["searched"] == {"nonsense": 0, "one": 1, "rank": 1}


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_who_listens_to_a_page_is_told_all_that_can_be_seen(tmp_path: Path) -> None:
    pages = {
        "two": parted(tmp_path, 2),
        "many": parted(tmp_path, 200),
        "check": of_check(report_of(*VERDICTS)),
    }
    with browser(tmp_path) as window:
        for name, made in pages.items():
            (tmp_path / f"{name}.html").write_text(render(made, "html"), encoding="utf-8")
            window.show(tmp_path / f"{name}.html", 1280, "light")
            told = window.heard()
            levels = [has["level"] for role, _, has in told if role == "heading"]
            assert levels.count(1) == 1, name
            assert all(now - before <= 1 for before, now in pairwise(levels)), (name, levels)
            nameless = [
                (role, has)
                for role, said, has in told
                if (has.get("focusable") or role == "image") and not said
            ]
            assert nameless == [], name
            if name == "two":
                words = " ".join(said for role, said, _ in told if role == "StaticText")
                assert "rank 0 waits in barrier #9 for rank 1" in " ".join(words.split())
                assert re.search(r"this line: \W*4 +dist\.barrier", words)

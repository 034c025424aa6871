"""The source gives a general finding its narrower name, with the line of the decision."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ddpdoctor.annotate import annotate
from ddpdoctor.annotate.naming import _first
from ddpdoctor.catalog import Cure, Finding, Phase, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.lint.engine.interpreter.machine import BY_SOME
from ddpdoctor.lint.engine.interpreter.values import Place as Where
from ddpdoctor.lint.engine.interpreter.values import Why
from ddpdoctor.lint.reason import heads


class Script:
    """A script on disk, and places in it by the comment that ends their line."""

    def __init__(self, folder: Path, source: str) -> None:
        self.file = folder / "train.py"
        self.file.write_text(textwrap.dedent(source), encoding="utf-8")
        self._lines = self.file.read_text(encoding="utf-8").splitlines()

    def place(self, comment: str, function: str = "main") -> Place:
        (number,) = (n for n, text in enumerate(self._lines, 1) if text.endswith(f"# {comment}"))
        return Place(str(self.file), number, function)

    def at(self, rank: int, doing: str, *comments: str, phase: Phase = "") -> RankPlace:
        """Where a rank stands; the last comment is the innermost line."""
        stack = tuple(self.place(comment) for comment in comments)
        return RankPlace(ranks=(rank,), place=stack[-1], doing=doing, phase=phase, stack=stack)


def finding(*places: RankPlace, title: str = "deadlock", ranks: tuple[int, ...] = ()) -> Finding:
    return Finding(
        code="DDP410" if title == "early-exit" else "DDP400",
        title=title,
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=places,
        cause="they wait.",
        cure=Cure(text="Mend it."),
    )


def only(general: Finding) -> Finding:
    (refined,) = annotate([general])
    return refined


PREAMBLE = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
"""

RANK_CONDITION = """
def save(model):
    dist.barrier()  # the barrier
def main(model, rank):
    for x in range(3):
        model(x).backward()  # the backward
        if rank == 0:  # the condition
            save(model)  # the call
"""


LOW_ENOUGH = """
def main(model, loader):
    model = DDP(model)
    for images, labels in loader:  # the loop
        loss = model(images).sum()
        loss.backward()  # the backward
        if loss.item() < 0.45:  # the condition
            break  # the break
    dist.barrier()  # the barrier
main(torch.nn.Linear(2, 2), __import__("elsewhere").loader(torch.distributed.get_rank()))
"""


@pytest.mark.parametrize(
    ("unfinished", "code", "line"), [(True, "DDP405", "the break"), (False, "DDP207", "the loop")]
)
def test_who_left_a_loader_that_had_more_has_left_by_a_break(
    tmp_path: Path, unfinished: bool, code: str, line: str
) -> None:
    script = Script(tmp_path, PREAMBLE + LOW_ENOUGH)
    left = script.at(1, "barrier #5", "the barrier")
    lines = (script.place("the loop"),) if unfinished else ()
    left = left.model_copy(update={"unfinished": lines})
    stays = script.at(0, "all_reduce #4", "the backward", phase="backward")
    named = only(finding(stays, left))
    assert (named.code, named.place) == (code, script.place(line))


def test_a_script_that_is_started_through_a_link_is_read_with_what_it_imports(
    tmp_path: Path,
) -> None:
    """Python follows links for what a script imports, and leaves them in the script's own name."""
    project = tmp_path / "project"
    project.mkdir()
    source = PREAMBLE + RANK_CONDITION.replace("rank == 0", "chosen").replace("rank", "chosen")
    (project / "loop.py").write_text(source, encoding="utf-8")
    (project / "train.py").write_text(
        "import torch.distributed as dist\nimport loop\nloop.main(None, dist.get_rank() == 0)\n",
        encoding="utf-8",
    )
    (link := tmp_path / "link").symlink_to(project)
    loop = source.splitlines()

    def at(rank: int, *comments: str) -> RankPlace:
        lines = [n for c in comments for n, text in enumerate(loop, 1) if text.endswith(f"# {c}")]
        stack = tuple(Place(str(project / "loop.py"), line, "main") for line in lines)
        main = Place(str(link / "train.py"), 3, "<module>")
        return RankPlace(ranks=(rank,), place=stack[-1], doing="waits", stack=(main, *stack))

    refined = only(finding(at(1, "the backward"), at(0, "the call", "the barrier")))
    assert (refined.code, refined.certainty) == ("DDP401", "proven")
    told = {each.place.file for each in refined.places if each.place}
    assert told == {str(project / "loop.py"), str(link / "train.py")}, "as the ranks named them"


def test_a_collective_under_a_rank_condition_is_named_through_calls(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + RANK_CONDITION)
    refined = only(
        finding(
            script.at(1, "all_reduce #5 (backward)", "the backward"),
            script.at(0, "barrier #5", "the call", "the barrier"),
        )
    )
    assert (refined.code, refined.ranks) == ("DDP401", (0,))
    assert refined.place == script.place("the barrier")
    assert f"under `if rank == 0:` (train.py:{script.place('the condition').line})" in refined.cause


def test_where_ranks_were_together_last_is_no_side_that_a_reason_is_asked_of(
    tmp_path: Path,
) -> None:
    script = Script(tmp_path, PREAMBLE + RANK_CONDITION)
    met = script.at(
        0, "barrier #4, the last of its group that all of them called", "the call", "the barrier"
    )
    refined = only(
        finding(
            script.at(1, "all_reduce #5 (backward)", "the backward"),
            script.at(2, "all_reduce #5 (backward)", "the backward"),
            met.model_copy(update={"phase": "together"}),
        )
    )
    assert refined.code == "DDP400"
    assert refined.places[2].place == script.place("the barrier")


def test_a_condition_that_both_sides_are_under_is_not_the_reason(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
def main(model, rank):
    if rank < 2:
        dist.barrier()  # first
        dist.all_reduce(model)  # second
""",
    )
    same = finding(script.at(0, "barrier #1", "first"), script.at(1, "all_reduce #1", "second"))
    assert only(same).code == "DDP400"


RAISE_BEFORE = """
def load(rank, path):
    if rank == 0 and not path.exists():
        raise FileNotFoundError(path)  # the raise
    dist.barrier()  # the barrier
def main(rank, path):
    {call}
    dist.all_reduce(rank)  # the sum
import contextlib
"""


def test_a_raise_that_ended_no_rank_is_not_the_reason(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + RAISE_BEFORE.format(call="load(rank, path)  # the call"))
    waits = script.at(1, "barrier #1", "the call", "the barrier")
    assert only(finding(waits, script.at(0, "all_reduce #1", "the sum"))).code == "DDP400"


@pytest.mark.parametrize(
    "call",
    [
        "try:\n        load(rank, path)  # the call\n    except OSError:\n        pass",
        "with contextlib.suppress(OSError):\n        load(rank, path)  # the call",
    ],
)
def test_a_raise_that_is_caught_may_be_the_reason(tmp_path: Path, call: str) -> None:
    script = Script(tmp_path, PREAMBLE + RAISE_BEFORE.format(call=call))
    waits = script.at(1, "barrier #1", "the call", "the barrier")
    refined = only(finding(waits, script.at(0, "all_reduce #1", "the sum")))
    assert refined.code == "DDP401"
    assert refined.cause.startswith("barrier #1 (train.py:9) stands after `if rank == 0 and")


def test_a_forward_of_the_wrapper_on_one_rank_is_told_from_other_collectives(
    tmp_path: Path,
) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
def main(model, rank):
    if rank == 0:
        model(1)  # the forward
    dist.barrier()  # the barrier
""",
    )
    refined = only(
        finding(
            script.at(0, "broadcast #5 (forward)", "the forward", phase="forward"),
            script.at(1, "barrier #5", "the barrier"),
        )
    )
    assert refined.code == "DDP406"


LOCAL_STOP = """
def main(model, stopper):
    for epoch in range(60):
        model(epoch).backward()  # the backward
        if stopper.step(epoch):
            break  # the break
    dist.barrier()  # the barrier
"""


def test_a_loop_that_one_side_has_left_by_break_is_a_local_stop(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + LOCAL_STOP)
    refined = only(
        finding(
            script.at(1, "all_reduce #9 (backward)", "the backward"),
            script.at(0, "barrier #9", "the barrier"),
        )
    )
    assert refined.code == "DDP405"
    assert refined.place == script.place("the break")


def test_ranks_that_suffer_at_one_line_are_one_party(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + LOCAL_STOP)
    left = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here")
    suffer = [script.at(rank, "raised RuntimeError", "the backward") for rank in (1, 2, 3)]
    refined = only(finding(left, *suffer, title="early-exit", ranks=(0,)))
    assert (refined.code, refined.ranks) == ("DDP405", (0,))
    assert refined.place == script.place("the break")


NO_WAY_OUT = """
def main(model, epochs):
    for epoch in range(3):
        model(epoch).backward()  # the backward
"""


def test_ranks_that_suffer_in_a_loop_that_nobody_leaves_are_not_a_local_stop(
    tmp_path: Path,
) -> None:
    script = Script(tmp_path, PREAMBLE + NO_WAY_OUT)
    left = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here")
    suffer = [script.at(rank, "raised RuntimeError", "the backward") for rank in (1, 2, 3)]
    general = finding(left, *suffer, title="early-exit", ranks=(0,))
    assert only(general) == general


KEPT = """
def keep(state, room):
    try:  # the block
        if state.size > room:
            raise OSError("no room")
        dist.barrier()  # the barrier
    except OSError:
        {then}
def main(state, room, model, loss):
    keep(state, room)  # the call
    loss.backward()  # the backward
"""


@pytest.mark.parametrize(("then", "code"), [("return False", "DDP404"), ("raise", "DDP400")])
def test_an_exception_that_one_rank_catches_and_leaves_by_is_named(
    tmp_path: Path, then: str, code: str
) -> None:
    script = Script(tmp_path, PREAMBLE + KEPT.format(then=then))
    refined = only(
        finding(
            script.at(1, "barrier #1", "the call", "the barrier"),
            script.at(0, "all_reduce #1 (backward)", "the backward"),
        )
    )
    assert refined.code == code
    if code == "DDP404":
        assert refined.certainty == "evidence"
        assert "nobody has seen it" in refined.cause
        assert script.place("the block", "keep") in [each.place for each in refined.places]


ASKED = """
def share(state, batch):
    try:
        if batch.ready():
            dist.all_reduce(state)  # the sum
    except ValueError:
        pass
    dist.barrier()  # the barrier
"""


def test_a_plain_if_inside_of_a_try_is_nearer_than_an_exception_that_nobody_saw(
    tmp_path: Path,
) -> None:
    script = Script(tmp_path, PREAMBLE + ASKED)
    refined = only(
        finding(script.at(1, "all_reduce #1", "the sum"), script.at(0, "barrier #1", "the barrier"))
    )
    assert refined.code == "DDP402"
    assert "`if batch.ready()`" in refined.cause


HANDED_BACK = """
def step(model, batch, normalised):
    try:
        batch = normalised(batch)
    except ValueError:  # the handler
        return
    model(batch).backward()  # the backward
def main(model, batches, normalised):
    for batch in batches:
        step(model, batch, normalised)  # the call
    dist.barrier()  # the barrier
"""


def test_a_round_that_is_handed_back_by_a_handler_is_a_step_that_is_skipped(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + HANDED_BACK)
    refined = only(
        finding(
            script.at(1, "all_reduce #9 (backward)", "the call", "the backward"),
            script.at(0, "barrier #9", "the barrier"),
        )
    )
    assert (refined.code, refined.certainty) == ("DDP307", "evidence")
    assert f"({script.file.name}:{script.place('the handler').line})" in refined.cause


CHANNEL = """
def pull(buffer, tag):
    dist.recv(buffer, 1, tag=tag)  # the receipt
def main(buffer, step):
    pull(buffer, step)  # the call
"""


def test_messages_that_never_meet_are_told_with_the_lines_that_ask_for_them(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + CHANNEL)
    refined = only(
        finding(
            script.at(0, "recv #1", "the call", "the receipt"),
            script.at(1, "recv #1", "the receipt"),
            title="send-recv-deadlock",
        )
    )
    assert script.place("the call") in [each.place for each in refined.places]


SKIPPED = """
def main(model, batches):
    for batch in batches:
        loss = model(batch)
        if torch.isnan(loss).item():
            continue  # the skip
        loss.backward()  # the backward
    dist.barrier()  # the barrier
"""


def test_a_batch_that_one_rank_skips_is_named_with_the_skip(tmp_path: Path) -> None:
    source = SKIPPED.replace("torch.isnan(loss).item()", "loss.item() > 9")
    script = Script(tmp_path, PREAMBLE + source)
    refined = only(
        finding(
            script.at(1, "all_reduce #9 (backward)", "the backward"),
            script.at(0, "barrier #9", "the barrier"),
        )
    )
    assert refined.code == "DDP307"
    assert script.place("the skip") in [each.place for each in refined.places]


GROUPS = """
def main(rank):
    if rank < 2:
        lead = dist.new_group([0, 1])  # the first
    pairs = dist.new_group([0, 2])  # the second
"""


def test_a_group_that_only_its_members_make_keeps_its_name(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + GROUPS)
    sides = script.at(0, "new_group([0, 1])", "the first"), script.at(2, "n", "the second")
    general = finding(*sides, title="partial-new-group").model_copy(update={"code": "DDP408"})
    assert only(general).code == "DDP408"


LEFT = """
def step(model, batch):
    loss = model(batch)
    if loss.item() > 9:
        return None  # the skip
    loss.backward()  # the backward
def main(model, batches):
    {calls}
    dist.barrier()  # the barrier
"""


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        ("losses = [each for each in (step(model, x) for x in batches)]  # the call", "DDP307"),
        ("for x in batches: step(model, x)  # the call", "DDP307"),
        ("step(model, batches)  # the call", "DDP405"),
    ],
)
def test_who_returns_from_what_a_loop_calls_skips_a_round(
    tmp_path: Path, calls: str, code: str
) -> None:
    script = Script(tmp_path, PREAMBLE + LEFT.format(calls=calls))
    refined = only(
        finding(
            script.at(1, "all_reduce #9 (backward)", "the call", "the backward"),
            script.at(0, "barrier #9", "the barrier"),
        )
    )
    assert refined.code == code
    assert script.place("the skip", "step") in [each.place for each in refined.places]


NOW_AND_THEN = """
def keep(since):
    if time.monotonic() - since < 60:
        return  # the return
    dist.all_gather_object(states, 1)  # the gathering
{more}

def main(model, batches):
    since = time.monotonic()
    for x in batches:
        model(x).sum().backward()  # the backward
        keep(since)  # the call
"""


@pytest.mark.parametrize(
    ("more", "code"), [("    print(states)", "DDP402"), ("    optimizer.step()", "DDP307")]
)
def test_who_returns_from_what_takes_no_step_skips_no_step(
    tmp_path: Path, more: str, code: str
) -> None:
    script = Script(tmp_path, f"import time\n{PREAMBLE}{NOW_AND_THEN.format(more=more)}")
    refined = only(
        finding(
            script.at(1, "all_gather #9", "the call", "the gathering"),
            script.at(0, "all_reduce #9 (backward)", "the backward"),
        )
    )
    assert refined.code == code
    assert "clocks differ" in refined.cause


AVERAGED = """
def average(net):
    for weight in net.parameters():  # the loop
        if weight.grad is not None:  # the condition
            dist.all_reduce(weight.grad)  # the reduction

def main(net, opt, rows):
    for row in rows:  # the rows
        net(row).sum().backward()
        if len(row) > 3:  # the length
            average(net)  # the call
        opt.step()
        dist.barrier()  # the barrier

main(torch.nn.Linear(3, 3), torch.optim.SGD([torch.zeros(3)], 0.1), [torch.ones(3)] * 9)  # the end
"""


def test_where_no_reason_is_known_what_decided_on_the_ways_is_told(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + AVERAGED)
    refined = only(
        finding(
            script.at(0, "all_reduce #4", "the end", "the call", "the reduction"),
            script.at(1, "barrier #4", "the end", "the barrier"),
        )
    )
    told = {e.place: e.ranks for e in refined.places if e.doing == "decides on the way there"}
    functions = {"the loop": "average", "the condition": "average"}
    decided = {script.place(comment, of): (0,) for comment, of in functions.items()}
    assert refined.code == "DDP400"
    assert decided.items() <= told.items()
    assert script.place("the rows") not in told, "both go through them"


@pytest.mark.parametrize(
    ("iterable", "code"),
    [("set(values)", "DDP413"), ("sorted(values)", "DDP418"), ("range(9)", "DDP400")],
)
def test_a_loop_over_collectives_is_named_by_what_it_goes_through(
    tmp_path: Path, iterable: str, code: str
) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + f"""
def main(values):
    for name in {iterable}:
        dist.all_reduce(values[name])  # the reduction
    dist.barrier()  # the barrier
""",
    )
    refined = only(
        finding(
            script.at(0, "all_reduce #4", "the reduction"),
            script.at(1, "barrier #4", "the barrier"),
        )
    )
    assert refined.code == code
    assert refined.ranks == ((0,) if code == "DDP418" else ()), "of a tie, the one in the loop"


@pytest.mark.parametrize(("kept", "code"), [("if rank == 0:", "DDP401"), ("if data:", "DDP400")])
def test_what_one_rank_alone_has_put_into_a_loop_is_decided_by_the_rank(
    tmp_path: Path, kept: str, code: str
) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + f"""
def save():
    dist.barrier()  # the save
def main(data):
    hooks, rank = [], dist.get_rank()
    {kept}
        hooks.append(save)  # the hook
    for hook in hooks:
        hook()  # the call
    dist.all_reduce(torch.zeros(1))  # the end
""",
    )
    saves = script.at(0, "barrier #4", "the call", "the save")
    refined = only(finding(saves, script.at(1, "all_reduce #4", "the end")))
    assert refined.code == code
    decided = Place(str(script.file), script.place("the hook").line - 1, "main")
    assert (decided in [each.place for each in refined.places]) == (code == "DDP401")


def test_an_exit_of_one_rank_is_the_place_of_an_early_exit(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
import sys
def main(model, rank):
    for epoch in range(3):
        if rank == 0:
            sys.exit(0)  # the exit
        model(epoch).backward()  # the backward
""",
    )
    waiting = script.at(1, "all_reduce #4 (backward)", "the backward")
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here")
    refined = only(finding(gone, waiting, title="early-exit", ranks=(0,)))
    assert (refined.code, refined.ranks) == ("DDP410", (0,))
    assert refined.place == script.place("the exit")


def test_work_of_one_rank_that_outlasts_a_timeout_is_named_with_its_condition(
    tmp_path: Path,
) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
def main(rank):
    if rank == 0:
        prepare()  # the work
    dist.barrier()  # the barrier
""",
    )
    slow, late = script.at(0, "was idle here", "the work"), script.at(1, "gave up", "the barrier")
    refined = only(finding(slow, late, title="timeout", ranks=(0,)))
    assert (refined.code, refined.place) == ("DDP412", script.place("the work"))


def test_of_two_equal_sides_the_one_that_refreshes_is_named(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
def main(model, ema, shard):
    best = 0.0
    for epoch in range(60):
        model(epoch).backward()  # the backward
        score = ema.score(shard)
        if score > best:  # the branch
            best = score
        else:
            again(ema)  # the call
def again(ema):
    dist.barrier()  # the barrier
    ema.load_state_dict(torch.load("best.pt"))
""",
    )
    barrier = script.place("the barrier", "again")
    stack = (script.place("the call"), barrier)
    refined = only(
        finding(
            script.at(0, "all_reduce #9 (backward)", "the backward"),
            RankPlace(ranks=(1,), place=barrier, doing="barrier #9", stack=stack),
        )
    )
    assert (refined.code, refined.ranks, refined.place) == ("DDP505", (1,), barrier)
    assert refined.places[1].place == script.place("the branch")


def test_what_the_source_does_not_explain_stays_as_it_was(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
def main(model):
    dist.barrier()  # first
    dist.all_reduce(model)  # second
""",
    )
    general = finding(script.at(0, "barrier #1", "first"), script.at(1, "all_reduce #1", "second"))
    assert only(general) == general


@pytest.mark.parametrize("text", ["def main(:\n", ""])
def test_a_source_that_cannot_be_read_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    place = Place(str(tmp_path / "train.py"), 7, "main")
    gone = Place(str(tmp_path / "missing.py"), 7, "main")
    general = finding(
        RankPlace(ranks=(0,), place=place, doing="barrier #1", stack=(place,)),
        RankPlace(ranks=(1,), place=gone, doing="all_reduce #1", stack=(gone,)),
    )
    assert only(general) == general


PATIENCE = """
    class Run:
        def fit(self, rank, loader, model):
            for epoch in self.patience:
                loss = train(model, loader)  # waits
                if rank == 0:  # asks
                    self.{done}(loss)

        def report(self, loss):
            print(loss)

        def finish(self, loss):
            self.patience.add(loss)

    def main(run, rank):
        run.fit(rank, [], None)  # fits
        dist.barrier()  # ends
"""


@pytest.mark.parametrize(("done", "code"), [("finish", "DDP405"), ("report", "DDP418")])
def test_what_one_rank_tells_to_what_a_loop_goes_through_may_end_it(
    tmp_path: Path, done: str, code: str
) -> None:
    script = Script(tmp_path, PATIENCE.format(done=done))
    waits = script.at(1, "all_reduce #36", "fits", "waits")
    (refined,) = annotate([finding(waits, script.at(0, "barrier #36", "ends"))])
    assert (refined.code, refined.certainty) == (code, "evidence")
    named = [each.place for each in refined.places]
    assert (script.place("asks", "Run.fit") in named) == (code == "DDP405")


def test_a_fault_in_reading_the_source_leaves_what_was_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(tmp_path, PREAMBLE + RANK_CONDITION)
    general = finding(
        script.at(1, "all_reduce #5", "the backward"),
        script.at(0, "barrier #5", "the call", "the barrier"),
    )
    monkeypatch.setattr("ddpdoctor.lint.reason.heads.run_file", lambda *_: 1 / 0)
    told = "a fault of ours in reading the source, ZeroDivisionError: division by zero"
    assert only(general) == general.model_copy(update={"evidence": (told,)})


COUNTED = """
import os
def begun(folder):
    mark = os.path.join(folder, f"chunks_{dist.get_rank()}.txt")
    if not os.path.isfile(mark):  # looks
        return 0
    return int(open(mark).read())
def main(model, folder, chunks):
    for _ in range(begun(folder), chunks):
        model(1).backward()  # the backward
    dist.barrier()  # the barrier
"""


def test_where_the_deciding_value_was_made_is_among_the_places(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + COUNTED)
    refined = only(
        finding(
            script.at(0, "all_reduce #9 (backward)", "the backward"),
            script.at(1, "barrier #9", "the barrier"),
        )
    )
    assert (refined.code, refined.certainty) == ("DDP418", "evidence")
    lines = [each.place.line for each in refined.places if each.place]
    assert script.place("looks").line in lines


SIZES = """
def share(rows):
    dist.all_gather([rows, rows], rows)  # the gather
def validate(model, batches):
    for batch in batches:
        share(model(batch))  # the call
"""


def test_who_calls_a_collective_with_other_sizes_is_told(tmp_path: Path) -> None:
    script = Script(tmp_path, PREAMBLE + SIZES)
    sizes = [script.at(rank, f"with [{rank}]", "the call", "the gather") for rank in (0, 1)]
    general = finding(*sizes, title="collective-shape-mismatch")
    refined = only(general.model_copy(update={"code": "DDP403"}))
    assert (refined.code, refined.certainty) == ("DDP403", "proven")
    assert [each.place for each in refined.places[2:]] == [script.place("the call", "validate")]


DRIFT = """
def update(model, batches, limit):
    for batch in batches:
        drift = model(batch).mean()
        if drift > limit:
            break  # the break
        dist.all_reduce(model.grads)  # the gradients
    dist.all_reduce(drift)  # the drift
"""


def test_sizes_of_two_lines_that_met_are_no_reason_but_what_parted_the_ranks_is(
    tmp_path: Path,
) -> None:
    script = Script(tmp_path, PREAMBLE + DRIFT)
    general = finding(
        script.at(0, "all_reduce #8 with [4482]", "the gradients"),
        script.at(1, "all_reduce #8 with []", "the drift"),
        title="collective-shape-mismatch",
    )
    refined = only(general.model_copy(update={"code": "DDP403"}))
    assert (refined.code, refined.certainty) == ("DDP405", "evidence")
    assert refined.place == script.place("the break", "update")


TABLE = """
def average(value):
    dist.all_reduce(value)  # the helper
class Table:
    def __init__(self):
        self.rows, self.wide = {}, {}
    def add(self, key, wide=False):
        self.rows[key] = []
        self.wide[key] = wide
    def told(self):
        for key in self.rows:
            if self.wide[key]:
                average(torch.tensor(self.rows[key]).max())
            else:
                average(torch.tensor(self.rows[key]))  # the row
            self.rows[key] = []
def learn(model, batches, keys):
    table = Table()
    for key in keys:
        table.add(key, wide=key.isupper())
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        for parameter in model.parameters():
            average(parameter.grad)  # the gradients
        if dist.get_rank() == 0:  # decides
            table.told()  # the table
"""


def test_a_helper_that_is_called_for_two_things_is_no_line_on_which_ranks_meet(
    tmp_path: Path,
) -> None:
    script = Script(tmp_path, PREAMBLE + TABLE)
    general = finding(
        script.at(0, "all_reduce #8 with []", "the table", "the row", "the helper"),
        script.at(1, "all_reduce #8 with [64]", "the gradients", "the helper"),
        title="collective-shape-mismatch",
    )
    refined = only(general.model_copy(update={"code": "DDP403"}))
    assert (refined.code, refined.places[1].place) == ("DDP401", script.place("decides", "learn"))


def test_what_a_decision_has_made_differ_is_no_reason_beside_it() -> None:
    def reason(line: int, why: Why | None) -> Any:
        node = SimpleNamespace(path="train.py")
        test = ast.Name("x", lineno=line)
        return SimpleNamespace(turn=SimpleNamespace(node=node), test=test, why=why)

    by_rank = reason(9, Why("the rank", Where("train.py", 9)))
    inside = reason(3, Why(BY_SOME, Where("train.py", 9)))
    elsewhere = reason(5, Why(BY_SOME, Where("train.py", 40)))
    itself = reason(6, Why(BY_SOME, Where("train.py", 6)))
    rest = [by_rank, elsewhere, itself]
    assert [*_first([inside, *rest])] == rest


LIMITED = """
def update(model, memory, limit):
    for batch in memory.parts():
        drift = model.measure(batch)
        if {asked}:
            break  # the break
        dist.all_reduce(model.grads)  # the gradients
    dist.all_reduce(model.drift)  # the drift
"""


@pytest.mark.parametrize(
    ("asked", "code"), [("limit and drift > limit", "DDP405"), ("model.is_done", "DDP418")]
)
def test_a_break_by_what_each_round_makes_is_nearer_than_that_nobody_knows_how_many_there_are(
    tmp_path: Path, asked: str, code: str
) -> None:
    script = Script(tmp_path, PREAMBLE + LIMITED.format(asked=asked))
    general = finding(
        script.at(0, "all_reduce #8 with [4482]", "the gradients"),
        script.at(1, "all_reduce #8 with []", "the drift"),
        title="collective-shape-mismatch",
    )
    refined = only(general.model_copy(update={"code": "DDP403"}))
    assert (refined.code, refined.certainty) == (code, "evidence")
    assert (refined.place == script.place("the break", "update")) == (code == "DDP405")


HEADS = """
class Detector(torch.nn.Module):
    def forward(self, crops, faces):
        found = self.trunk(crops)
        {asks}
        {inside}return self.landmarks(found)  # uses
        return found
    def landmarks(self, found):
        return self.points(found)  # reads
def main(net, batches):
    model = DDP(net)
    for crops, faces in batches:
        model(crops, faces).sum().backward()  # the backward
"""


@pytest.mark.parametrize(
    ("asks", "inside"),
    [
        ("if len(faces):  # asks", "    "),
        ("if not len(faces): return found  # asks", ""),
        ("pass", ""),
    ],
)
def test_the_condition_under_which_a_model_uses_what_was_skipped_is_told(
    tmp_path: Path, asks: str, inside: str
) -> None:
    script = Script(tmp_path, PREAMBLE + HEADS.format(asks=asks, inside=inside))
    raised = script.at(0, "raised RuntimeError", "the backward")
    reads = script.at(0, "uses them", "reads", phase="forward")
    refined = only(finding(raised, reads, title="unused-parameters", ranks=(0,)))
    told = [each.place.line for each in refined.places[2:] if each.place]
    assert told == ([script.place("asks").line] if "asks" in asks else [])


CACHE = """
import os
def load(rank, path):
    if os.path.exists(path):
        return torch.load(path)  # the look
    if rank == 0:
        torch.save(build(), path)
        dist.{one}  # the wait
    else:
        dist.{other}
    return torch.load(path)
def main(path):
    dist.init_process_group("gloo")
    data = load(dist.get_rank(), path)  # the call
    DDP(torch.nn.Linear(data, 1))  # the wrap
main("cache.pt")
"""


@pytest.mark.parametrize(
    ("other", "code", "told"),
    [
        ("broadcast(torch.zeros(1), src=0)", "DDP513", "the look"),
        ("all_reduce(torch.zeros(1))", "DDP401", "rank == 0"),
    ],
)
def test_a_rank_condition_with_the_same_collective_in_both_arms_is_not_the_reason(
    tmp_path: Path, other: str, code: str, told: str
) -> None:
    """A rank that came late has found the file; by the other arm it would have taken part."""
    one = "broadcast(torch.zeros(1), src=0)"
    script = Script(tmp_path, PREAMBLE + CACHE.format(one=one, other=other))
    refined = only(
        finding(
            script.at(0, "broadcast #1", "the call", "the wait"),
            script.at(1, "all_gather #1", "the wrap"),
        )
    )
    assert refined.code == code
    assert refined.certainty == ("evidence" if code == "DDP513" else "proven")
    assert told in refined.cause or refined.places[1].place == script.place(told, "load")


STOPS = """
def epoch(model, data):
    for x in data:
        loss = model(x)
        loss.backward()  # the backward
        if loss.item() > 9:
            break  # the inner break
import os
def resumed(path):
    if os.path.exists(path):
        return torch.load(path)["epoch"]
    return 0
def main(path, data):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(2, 1))
    for _ in range({rounds}):  # the epochs
        epoch(model, data)  # the call
main("last.pt", [torch.rand(2)])
"""


@pytest.mark.parametrize(
    ("rounds", "place"),
    [("resumed(path), 9", "the epochs"), ("9", "the inner break")],
)
def test_who_has_ended_has_left_the_outermost_loop(tmp_path: Path, rounds: str, place: str) -> None:
    script = Script(tmp_path, PREAMBLE + STOPS.format(rounds=rounds))
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here", phase="ended")
    waiting = script.at(1, "raised RuntimeError: closed", "the call", "the backward")
    refined = only(finding(gone, waiting, title="early-exit", ranks=(0,)))
    assert refined.place is not None
    assert refined.place.line == script.place(place).line
    assert "raised" not in refined.cause


def test_an_exit_of_the_process_is_not_where_a_rank_went_that_waits(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        PREAMBLE
        + """
import sys
def forward(model, x, own):
    if len(own) != dist.get_rank():
        sys.exit("wrong sizes")
    dist.all_reduce(x)  # the sum
def main(batches, own):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(2, 1))
    for x, y in batches:
        forward(model, x, own)  # the call
        loss = model(x)
        if y.sum().item() + dist.get_rank() < 2:
            continue  # the skip
        loss.backward()  # the backward
main([(torch.rand(2), torch.rand(2))], [])
""",
    )
    refined = only(
        finding(
            script.at(0, "all_reduce #5", "the call", "the sum"),
            script.at(1, "all_reduce #5 (backward)", "the backward", phase="backward"),
        )
    )
    assert (refined.code, refined.certainty) == ("DDP307", "evidence")
    assert refined.places[1].place == script.place("the skip")


SAVES = """
def main(model, data):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(2, 1))
    for x in data:
        if rank == 0:  # the condition
            {save}
        model(x).backward()  # the backward
main(None, [torch.rand(2)])
"""
FAILS = """try:
                torch.save(model.state_dict(), "model.pt")
            except OSError:
                break  # the break"""


@pytest.mark.parametrize(
    ("save", "certainty"), [("break  # the break", "proven"), (FAILS, "evidence")]
)
def test_a_way_out_that_more_than_the_rank_decides_on_is_not_proven(
    tmp_path: Path, save: str, certainty: str
) -> None:
    script = Script(tmp_path, PREAMBLE + SAVES.format(save=save))
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here", phase="ended")
    waiting = script.at(1, "raised RuntimeError: closed", "the backward")
    refined = only(finding(gone, waiting, title="early-exit", ranks=(0,)))
    assert (refined.code, refined.certainty) == ("DDP405", certainty)
    assert refined.place == script.place("the break")
    assert "never reach it" not in refined.cause


def test_who_is_sent_out_by_its_rank_is_not_who_stays(tmp_path: Path) -> None:
    """Rank 1 stands behind it, and so nobody has come to this exit."""
    script = Script(
        tmp_path,
        PREAMBLE
        + """
def main(x, evaluates):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if evaluates:
        if rank == 0:
            print(x)
        else:
            return
    while True:
        dist.all_reduce(x)  # the sum
        if x.sum().item() + rank > 3:
            break  # the break
main(torch.rand(2), input())
""",
    )
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here", phase="ended")
    waiting = script.at(1, "raised RuntimeError: closed", "the sum")
    refined = only(finding(gone, waiting, title="early-exit", ranks=(0,)))
    assert (refined.code, refined.place) == ("DDP405", script.place("the break"))


def test_two_lines_of_one_rank_are_not_those_of_another(tmp_path: Path) -> None:
    """What it was the last to call, and where it then found the others gone."""
    script = Script(
        tmp_path,
        PREAMBLE
        + """
import time
def main(x):
    dist.init_process_group("gloo")
    start = time.time()
    while True:
        dist.all_reduce(x)  # the sum
        dist.broadcast(x, 0)  # the broadcast
        if time.time() - start > 3:
            break  # the break
main(torch.rand(2))
""",
    )
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here", phase="ended")
    called = script.at(1, "broadcast #4, which rank 0 never called", "the broadcast")
    raised = script.at(1, "raised RuntimeError: closed", "the sum")
    refined = only(finding(called, gone, raised, title="early-exit", ranks=(0,)))
    assert (refined.code, refined.place) == ("DDP405", script.place("the break"))


def test_where_a_rank_stands_is_found_behind_much_else(tmp_path: Path) -> None:
    """Without what comes before it, nothing would be known of a line far down."""
    much = "".join(f"    c[{n}] = [{n}, a, b, str(a), len(b), a + b]\n" for n in range(900))
    script = Script(
        tmp_path,
        PREAMBLE
        + f"""
def options(a, b):
    c = {{}}
{much}    return c
def main(x):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for one in range(9):
        options(one, x)
    while True:
        dist.all_reduce(x)  # the sum
        if x.sum().item() + rank > 3:
            break  # the break
main(torch.rand(2))
""",
    )
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here", phase="ended")
    waiting = script.at(1, "raised RuntimeError: closed", "the sum")
    refined = only(finding(gone, waiting, title="early-exit", ranks=(0,)))
    assert (refined.code, refined.place) == ("DDP405", script.place("the break"))


RAISED_INSIDE = """
Failure = RuntimeError
def epoch(model, data):
    for x in data:
        loss = model(x)
        loss.backward()  # the backward
        if torch.isnan(loss).any():
            raise RuntimeError("not a number")  # the raise
def main(data):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(2, 1))
    try:
        epoch(model, data)  # the call
    except {caught}:
        print("stopped")
main([torch.rand(2)])
"""


@pytest.mark.parametrize(
    ("caught", "code"),
    [
        ("RuntimeError", "DDP404"),
        ("(OSError, Exception)", "DDP404"),
        ("Failure", "DDP404"),
        ("KeyboardInterrupt", "DDP410"),
    ],
)
def test_a_loop_that_is_left_by_an_exception_is_left_where_that_is_caught(
    tmp_path: Path, caught: str, code: str
) -> None:
    script = Script(tmp_path, PREAMBLE + RAISED_INSIDE.format(caught=caught))
    gone = RankPlace(ranks=(0,), place=None, doing="has ended; last seen here", phase="ended")
    waiting = script.at(1, "raised RuntimeError: closed", "the call", "the backward")
    refined = only(finding(gone, waiting, title="early-exit", ranks=(0,)))
    assert refined.code == code
    if code == "DDP404":
        assert (refined.place, refined.certainty) == (
            script.place("the raise", "epoch"),
            "evidence",
        )


def test_a_way_through_other_lines_than_the_stack_is_not_the_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is not followed to the second call, and the first is another rank's at best."""
    monkeypatch.setattr(heads, "_FUEL", 1_200)
    monkeypatch.setattr(heads, "_MORE_FUEL", 1_300)
    much = "".join(f"    c[{n}] = [{n}, a, str(a), len(a), a + a]\n" for n in range(400))
    script = Script(
        tmp_path,
        PREAMBLE
        + f"""
def step(model, x):
    loss = model(x)  # the forward
    if loss.item() > 9:
        raise ValueError("a spike")  # the raise
    loss.backward()  # the backward
def much(a):
    c = {{}}
{much}    return c
def train(model, data):
    for x in data:
        try:
            step(model, x)  # the call
        except ValueError:
            print("skipped")
def main(data):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(2, 1))
    step(model, data[0])
    much(data)
    train(model, data)  # the training
main([torch.rand(2)])
""",
    )
    calls = ("the training", "the call")
    refined = only(
        finding(
            script.at(0, "all_reduce #6 (backward)", *calls, "the backward", phase="backward"),
            script.at(1, "broadcast #6 (forward)", *calls, "the forward", phase="forward"),
        )
    )
    assert refined.code == "DDP307"
    assert script.place("the raise", "step") in [each.place for each in refined.places]


UNEQUAL = """
import random
def main(model):
    rng = random.Random()
    for _ in range(rng.choice([2, 3, 5])):  # the rounds
        model().backward()  # the backward
    dist.all_reduce(state)  # the sum
"""


@pytest.mark.parametrize("doing", ["all_reduce #9 (backward)", "in backward meanwhile"])
def test_a_loop_that_trains_unequally_often_is_one_of_uneven_batches(
    tmp_path: Path, doing: str
) -> None:
    script = Script(tmp_path, PREAMBLE + UNEQUAL)
    backward = script.at(1, doing, "the backward")
    if "(backward)" in doing:
        backward = backward.model_copy(update={"phase": "backward"})
    refined = only(finding(backward, script.at(0, "all_reduce #9", "the sum")))
    assert (refined.code, refined.certainty) == ("DDP207", "evidence")
    assert script.place("the rounds", "main") in [each.place for each in refined.places]
    assert "meanwhile" not in refined.cause


ENDING = (
    PREAMBLE
    + """
class Patience:
    def on_log(self, args, state, control, **kwargs):
        if self.bad > 3:
            control.should_training_stop = SAID  # the end
class Ours(Trainer):
    def compute_loss(self, model, inputs):
        return model(inputs)  # the loss
def main():
    trainer.train()  # the training
"""
)


@pytest.mark.parametrize(
    ("said", "within", "told"),
    [
        ("True", "/site-packages/transformers/trainer.py", True),
        ("False", "/site-packages/transformers/trainer.py", False),
        ("True", "/site-packages/torch/nn/modules/module.py", False),
    ],
)
def test_what_tells_a_librarys_loop_to_end_is_named_where_a_rank_has_left_it(
    tmp_path: Path, said: str, within: str, told: bool
) -> None:
    script = Script(tmp_path, ENDING.replace("SAID", said))
    inside = script.at(0, "raised RuntimeError: closed", "the training", "the loss")
    frames = (inside.stack[0], Place(within, 1700, "train"), inside.stack[1])
    refined = only(
        finding(
            script.at(1, "has ended; last seen here", "the training", phase="ended"),
            inside.model_copy(update={"stack": frames}),
            title="early-exit",
            ranks=(1,),
        )
    )
    assert (refined.code == "DDP405") == told
    if told:
        assert refined.certainty == "evidence"
        assert refined.places[0].place == script.place("the end", "Patience.on_log")
        assert "under `self.bad > 3`" in refined.cause


@pytest.mark.parametrize(
    ("head", "first", "code"),
    [
        ("for rows in reader:", "", "DDP207"),
        ("for rows in reader:", "if rows is None: continue", "DDP307"),
        ("for rows in range(reader):", "", "DDP400"),
    ],
)
def test_who_has_left_a_loop_over_something_had_less_of_it(
    head: str, first: str, code: str, tmp_path: Path
) -> None:
    """Nothing is known of the reader. What may be gone past in a round may be the reason, too."""
    script = Script(
        tmp_path,
        PREAMBLE
        + f"""
def learn(model, reader):
    {head}  # the loop
        {first}
        model(rows).mean().backward()  # the backward
    dist.barrier()  # the barrier
""",
    )
    late = script.at(0, "all_reduce #8 (backward)", "the backward")
    refined = only(
        finding(late.model_copy(update={"phase": "backward"}), script.at(1, "b", "the barrier"))
    )
    assert refined.code == code
    if code == "DDP207":
        assert (refined.certainty, refined.place) == ("evidence", script.place("the loop", "learn"))


REQUEUE = """
import signal
class Job:
    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGUSR1, self.hear)
    def hear(self, number, frame):
        self.asked = True
    def run(self, model, steps):
        for step in range(steps):
            model(step).backward()  # the backward
            if self.asked:  # the question
                dist.barrier()  # the barrier
                {then}
def main(model):
    Job().run(model, 9)  # the run
main(torch.nn.Linear(2, 1))
"""


@pytest.mark.parametrize(("then", "is_stop"), [("return", True), ("break", True), ("pass", False)])
def test_an_arm_that_leaves_the_loop_in_the_end_decides_when_to_stop(
    tmp_path: Path, then: str, is_stop: bool
) -> None:
    script = Script(tmp_path, PREAMBLE + REQUEUE.replace("{then}", then))
    waits = script.at(1, "barrier #9", "the run", "the barrier")
    trains = script.at(0, "all_reduce #9 (backward)", "the run", "the backward")
    refined = only(finding(waits, trains.model_copy(update={"phase": "backward"})))
    assert (refined.code == "DDP405") == is_stop
    assert script.place("the question", "Job.run") in [each.place for each in refined.places]

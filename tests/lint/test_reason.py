"""Why the ways of two ranks parted: the decision that only one of them has met, nearest first."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from ddpdoctor.lint.reason import Heads, Line, Reason, order, reason

HEAD = "import os\nimport time\nimport torch\nimport torch.distributed as dist\n"


class Script:
    """A script on disk; stacks in it are told by the comments that end their lines."""

    def __init__(self, folder: Path, text: str) -> None:
        self.file = folder / "train.py"
        self.file.write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
        self._lines = self.file.read_text(encoding="utf-8").splitlines()

    def stack(self, *comments: str) -> tuple[Line, ...]:
        return tuple((str(self.file), self.line(each)) for each in comments)

    def line(self, comment: str) -> int:
        (found,) = (n for n, text in enumerate(self._lines, 1) if text.endswith(f"# {comment}"))
        return found

    def told(self, *comments: str) -> list[str]:
        """All decisions on the way to a line that ranks may answer differently."""
        stack = self.stack(*comments)
        return [each.told for each in Heads([stack]).reasons(stack) if each.kind != "open"]

    def parted(self, mine: str, theirs: str) -> Reason | None:
        return reason(self.stack(*mine.split()), self.stack(*theirs.split()))


def test_the_condition_that_encloses_a_line_is_told(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        """
        def main(rank):
            print(rank)  # starts
            if rank == 0:  # asks
                dist.barrier()  # waits
        """,
    )
    assert script.told("waits") == [
        f"stands under `if rank == 0:` (train.py:{script.line('asks')})"
    ]
    assert script.told("starts") == []
    gone = ((str(tmp_path / "gone.py"), 1),)
    assert reason(gone, gone) is None


def test_what_stands_on_the_line_of_its_condition_is_under_it(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        """
        def main(rank, model):
            if rank == 0: dist.barrier()  # waits
            if model is None: return  # asks all
            dist.all_reduce(model)  # reduces
        """,
    )
    at = f"(train.py:{script.line('waits')})"
    assert script.told("waits") == [f"stands under `if rank == 0:` {at}"]
    assert script.told("asks all") == script.told("reduces") == []


def test_exits_callers_and_values_of_the_ranks_own_are_known(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        """
        def sync():
            dist.barrier()  # sync
        def early(rank):
            if rank > 0:  # asks
                return
            dist.barrier()  # early
        def main(rank):
            if rank == 0:  # decides
                sync()
        def clock(end):
            if time.time() > end:
                dist.barrier()  # clock
        """,
    )
    early, decides = script.line("asks"), script.line("decides")
    assert script.told("early") == [f"stands after `if rank > 0: return` (train.py:{early})"]
    assert script.told("sync") == [f"stands under `if rank == 0:` (train.py:{decides})"]
    found = Heads([script.stack("clock")]).reasons(script.stack("clock"))
    assert [each.cause for each in found] == ["clock"]
    assert "time.time()" in found[0].chain[0].message


CALLBACKS = """
    class Logger:
        def __init__(self, rank):
            self.rank = rank
        def log(self, value):
            {exit}
            dist.all_reduce(value)  # waits
    class Trainer:
        def __init__(self, callbacks):
            self.callbacks = callbacks
        def call(self, value):
            for callback in self.callbacks:
                callback.log(value)  # calls
        def fit(self, value):
            for step in range(9):
                self.call(value)  # fits
                dist.barrier()  # meets
    def main(rank):
        Trainer([Logger(rank)]).fit(torch.zeros(1))  # starts
    if __name__ == "__main__":
        dist.init_process_group("gloo")
        main(dist.get_rank())  # begins
"""


def test_an_exit_of_the_rank_two_frames_up_comes_before_the_count_of_a_loop(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        """
        def skip(rank):
            return rank != 0
        def call(callbacks, value, rank):
            if skip(rank):  # asks
                return
            for callback in callbacks:
                callback.sync(value)
                send(value)  # calls
        def send(value):
            dist.all_reduce(value)  # waits
        def main(callbacks, value):
            rank = dist.get_rank()
            for step in range(9):
                call(callbacks, value, rank)  # does
                dist.barrier()  # meets
        """,
    )
    found = script.parted("does calls waits", "meets")
    assert found is not None
    assert (found.kind, found.left, found.sure) == ("rank", "return", True)
    assert found.where == f"train.py:{script.line('asks')}"
    assert "skip() returns it" in found.chain[0].message


@pytest.mark.parametrize(
    ("exit_", "kind"),
    [("if self.rank == 0: return", "rank"), ("if os.path.exists('x'): return", "local")],
)
def test_what_an_object_keeps_is_known_across_frames(tmp_path: Path, exit_: str, kind: str) -> None:
    script = Script(tmp_path, CALLBACKS.format(exit=exit_))
    found = script.parted("begins starts fits calls waits", "begins starts meets")
    assert found is not None
    assert (found.kind, found.left) == (kind, "return")


def test_what_is_alike_on_all_ranks_parts_nobody(tmp_path: Path) -> None:
    script = Script(tmp_path, CALLBACKS.format(exit="if value.numel() == 9: return"))
    found = script.parted("begins starts fits calls waits", "begins starts meets")
    assert found is None or found.kind == "open"


def test_a_decision_that_sends_the_ranks_elsewhere_is_not_theirs(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        """
        def main():
            rank = dist.get_rank()
            if rank < 4:
                if rank == 0:  # asks
                    dist.broadcast(torch.ones(1), 0)  # waits
            dist.barrier()  # meets
        """,
    )
    mine, theirs = script.stack("waits"), script.stack("meets")
    found = Heads([mine, theirs]).reasons(mine, theirs, ((0,), (1, 2)))
    assert [each.where for each in found] == [f"train.py:{script.line('asks')}"]
    assert found[0].fits


@pytest.mark.parametrize(
    ("asks", "parts"),
    [
        ("rank == world - 1", True),
        ("rank >= world // 2", True),
        ("not rank < world - 1 and rank > 0", True),
        ("rank == 15", False),
        ("rank >= 8", False),
    ],
)
def test_what_asks_for_the_world_size_parts_the_ranks_of_a_smaller_job(
    tmp_path: Path, asks: str, parts: bool
) -> None:
    script = Script(
        tmp_path,
        f"""
        def main():
            rank, world = dist.get_rank(), dist.get_world_size()
            if {asks}:
                dist.broadcast(torch.ones(1), 0)  # waits
            dist.barrier()  # meets
        """,
    )
    mine, theirs = script.stack("waits"), script.stack("meets")
    found = Heads([mine, theirs]).reasons(mine, theirs, ((3,), (0, 1)))
    assert [each.fits for each in found] == ([False] if parts else [])


UNSEEN = """
    class Spectra:
        def __init__(self, net, rank):
            self.kept, self.rank, self.verbose = [], rank, False
            net.register_forward_hook(self.keep)
        def keep(self, module, inputs, output):
            self.kept.append(output)
        def flush(self):
            if self.rank == 0:  # asks
                for each in self.kept:
                    {inside}
                        print(each)  # prints
    def main():
        dist.init_process_group("gloo")
        spectra = Spectra(torch.nn.Linear(2, 2), dist.get_rank())
        spectra.flush()  # calls
    main()  # begins
"""


@pytest.mark.parametrize("inside", ["if True:", "if self.verbose:", "while self.verbose:"])
def test_where_a_rank_was_seen_the_program_goes_whatever_seems_to_lead_around_it(
    tmp_path: Path, inside: str
) -> None:
    script = Script(tmp_path, UNSEEN.format(inside=inside))
    stack = script.stack("begins", "calls", "prints")
    found = Heads([stack]).reasons(stack)
    asks = [each.where for each in found if each.kind == "rank"]
    assert asks == [f"train.py:{script.line('asks')}"]


GUESSED = """
    def main(model, loader, optimizer):
        dist.init_process_group("gloo")
        model, step = DistributedDataParallel(model), 0
        try:
            step = torch.load("last.pt")["step"]
        except OSError:
            pass
        for batch in loader:
            if step > 100:
                return
            if batch.abs().max() > 4:
                continue  # skips
            model(batch).sum().backward()  # waits
            optimizer.step()
            step += 1
    {loader}
    main(torch.nn.Linear(2, 2), loader, torch.optim.SGD([torch.ones(1)]))  # begins
"""
SHARDS = "loader = DataLoader(data, sampler=DistributedSampler(data))"


def test_an_exception_that_nobody_has_seen_explains_less_than_a_ranks_own_data(
    tmp_path: Path,
) -> None:
    script = Script(tmp_path, GUESSED.format(loader=SHARDS))
    stack = script.stack("begins", "waits")
    first = min(Heads([stack]).reasons(stack), key=order)
    assert (first.left, first.line) == ("continue", script.line("skips"))


WORDS = """
import ast
import sys


def parsed(kind):
    made = kind()
    for word in sys.argv[1:]:
        name, value = word[2:].split("=")
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            pass
        setattr(made, name.replace("-", "_"), value)
    return made
"""
NAMED = """
    from words import parsed
    class Settings:
        enough: float = None
    if __name__ == "__main__":
        settings = parsed(Settings)
        dist.init_process_group("gloo")
        total = torch.randn(3)
        for _ in range(10):
            loss = torch.randn(3).mean()
            if settings.enough is not None and loss > settings.enough:
                break  # leaves
            dist.all_reduce(total)  # waits
"""


def test_what_is_set_by_a_name_that_is_not_known_may_be_what_the_class_has_otherwise(
    tmp_path: Path,
) -> None:
    (tmp_path / "words.py").write_text(WORDS, "utf-8")
    script = Script(tmp_path, NAMED)
    stack = script.stack("waits")
    found = Heads([stack]).reasons(stack)
    assert script.line("leaves") in [each.line for each in found]


BUILT = """
    def build(rank, width):
        {first}
        net = torch.nn.Linear(4, width)
        {then}
        return net
    def main():
        dist.init_process_group("gloo")
        rank = dist.get_rank()  # asks
        net = build(rank, 8)
        DistributedDataParallel(net)  # wraps
    main()
"""


@pytest.mark.parametrize(
    ("first", "then", "parts"),
    [
        ("width = rank + 1", "pass", "asks"),
        ("pass", "if rank:  # then\n            net.requires_grad_(False)", "then"),
        ("pass", "if rank:  # then\n            print(net)", ""),
    ],
)
def test_what_ranks_answer_differently_in_building_a_model_is_known(
    tmp_path: Path, first: str, then: str, parts: str
) -> None:
    head = "    from torch.nn.parallel import DistributedDataParallel\n"
    script = Script(tmp_path, head + BUILT.format(first=first, then=then))
    at = script.stack("wraps")
    lines = [each.line for each in Heads([at]).built_apart(at)]
    assert lines[:1] == ([script.line(parts)] if parts else [])


def test_a_long_program_that_nobody_is_seen_to_call_is_followed_farther(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the function that each of the started processes runs: it is run alone, and is long too."""
    monkeypatch.setattr("ddpdoctor.lint.reason.heads._FUEL", 1_000)
    much = "".join(f"            c[{n}] = [{n}, str({n}), len(data)]\n" for n in range(100))
    script = Script(
        tmp_path,
        f"""
        def worker(rank, data):
            c = {{}}
{much}
            for x in data:  # goes on
                if rank == 0:
                    dist.barrier()  # waits
                dist.all_reduce(x)  # next
        """,
    )
    found = script.parted("waits", "next")
    assert found is not None
    assert found.kind == "rank"


def test_who_never_goes_there_by_its_rank_needs_no_other_reason(tmp_path: Path) -> None:
    """The clocks may differ; but the rank alone keeps rank 1 out, and of an `or` it does not."""
    script = Script(
        tmp_path,
        """
        rank = dist.get_rank()
        while True:
            if time.time() > 1e9 and rank == 0:
                dist.barrier()  # both
            if time.time() > 1e9 or rank == 0:
                dist.barrier()  # either
            dist.all_reduce(step)  # next
        """,
    )
    for mine, kind in (("both", "rank"), ("either", "local")):
        stacks = script.stack(mine), script.stack("next")
        first = Heads(stacks).reasons(*stacks, ((0,), (1,)))[0]
        is_rank = kind == "rank"
        assert (first.kind, first.fits, bool(first.chain)) == (kind, is_rank, not is_rank)


EVALUATES = """
    def main(rank, only, batches, limit):
        if only:
            loss = torch.rand(1)
            dist.reduce(loss, 0)
            if rank == 0:
                print(loss)
            else:
                return
            {after}
        for batch in batches:
            if time.time() > limit:
                break
            dist.all_reduce(batch)  # waits
"""


@pytest.mark.parametrize(
    ("after", "kinds"), [("return", ["local"]), ("print()", ["local", "rank"])]
)
def test_what_decides_in_a_part_that_all_leave_is_no_reason_of_who_goes_on(
    tmp_path: Path, after: str, kinds: list[str]
) -> None:
    script = Script(tmp_path, EVALUATES.format(after=after))
    stack = script.stack("waits")
    found = [each.kind for each in Heads([stack]).reasons(stack) if each.left]
    assert sorted({*found} - {"open"}) == kinds


@pytest.mark.parametrize(("after", "told"), [("return", []), ("print()", ["rank == 0"])])
def test_nor_is_it_one_of_a_way_out_of_a_loop(tmp_path: Path, after: str, told: list[str]) -> None:
    text = """
        def main(rank, batches, only):
            for batch in batches:
                dist.all_reduce(batch)  # waits
                if only:
                    if rank == 0:
                        break
                    {after}
    """
    script = Script(tmp_path, textwrap.dedent(text).format(after=after))
    assert [each.partition("`if ")[2].partition(":")[0] for each in script.told("waits")] == told


def test_a_set_of_what_a_rank_has_turned_round_differs_by_its_order(tmp_path: Path) -> None:
    script = Script(
        tmp_path,
        """
        def begin(rank, names):
            labels = list(names)
            first = rank % len(labels)
            return labels[first:] + labels[:first]


        def main():
            dist.init_process_group("gloo")
            counted = {name: torch.ones(1) for name in "abc"}
            seen = set(begin(dist.get_rank(), "abc"))
            for name in seen:  # goes through
                dist.all_reduce(counted[name])  # waits
        """,
    )
    stack = script.stack("waits")
    assert [each.kind for each in Heads([stack]).reasons(stack)] == ["order"]

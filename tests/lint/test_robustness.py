from __future__ import annotations

import ast
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddpdoctor.lint import fixing, running
from ddpdoctor.lint.engine.interpreter import program
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.statements.blocks import run_block
from ddpdoctor.lint.judged import Judged
from ddpdoctor.lint.linter import lint as lint_files
from ddpdoctor.lint.reason import Heads
from ddpdoctor.lint.running import run_and_judge
from ddpdoctor.report.gravity import FailOn
from tests.lint.conftest import Lint
from tests.thorough import one_in

SAMPLES = Path(__file__).parent / "samples"
HANG = (
    b"import torch.distributed as dist\nrank = dist.get_rank()\nif rank == 0:\n    dist.barrier()\n"
)

STRANGE = {
    "syntax_error.py": b"def (:\n",
    "python2.py": b'print "hello"\nexec "x = 1"\n',
    "null.py": b"x = 1\x00\n",
    "latin.py": b"x = '\xe9'\n",
    "bad_coding.py": b"# -*- coding: nonsense -*-\n",
    "deep.py": b"(" * 5000 + b")" * 5000,
    "deep_sum.py": b"x = " + b"1+" * 20000 + b"1\n",
    "deep_blocks.py": b"".join(b" " * i + b"if x:\n" for i in range(150)),
    "torn.ipynb": b'{"cells": [',
    "no_notebook.ipynb": b"[1, 2]",
    "binary.py": bytes(range(256)) * 8,
}
if sys.version_info >= (3, 14):
    del STRANGE["deep_sum.py"]  # which can be parsed there


@pytest.mark.parametrize("name", STRANGE)
def test_what_cannot_be_read_gets_one_line_and_stops_nothing(lint: Lint, name: str) -> None:
    Path(name).write_bytes(STRANGE[name])
    Path("zz_hang.py").write_bytes(HANG)
    code, out, err = lint()
    assert code == 1
    assert out.startswith("zz_hang.py:4:5: DDP401")
    assert err.count("\n") == 1
    assert err.startswith(f"{name}: ")
    assert "fault" not in err
    assert lint(name)[0] == 3
    assert lint(name, ignore=("DDP4",))[0] == 3


STRANGE_BUT_FINE = {
    "bom.py": b"\xef\xbb\xbf" + HANG,
    "crlf.py": HANG.replace(b"\n", b"\r\n"),
    "cr.py": HANG.replace(b"\n", b"\r"),
    "coding.py": b"# -*- coding: latin-1 -*-\n" + HANG + b"x = '\xe9'\n",
    "form_feed.py": HANG.replace(b"\nif", b"\n\x0c\nif"),
    "long_line.py": HANG + b"x = '" + b"y" * 1_000_000 + b"'\n",
    "no_end.py": HANG.rstrip(),
    "tabs.py": HANG.replace(b"    ", b"\t"),
}


@pytest.mark.parametrize("name", STRANGE_BUT_FINE)
def test_what_python_can_read_is_linted(lint: Lint, name: str) -> None:
    Path(name).write_bytes(STRANGE_BUT_FINE[name])
    code, out, err = lint(format="text")
    assert (code, err) == (1, "")
    assert "dist.barrier()" in out
    assert max(map(len, out.splitlines())) <= 100


def test_links_in_circles_unreadable_files_and_fifos_stop_nothing(lint: Lint) -> None:
    Path("loop").symlink_to(".", target_is_directory=True)
    Path("self.py").symlink_to("self.py")
    os.mkfifo("pipe.py")
    Path("closed.py").write_bytes(HANG)
    Path("closed.py").chmod(0)
    Path("hang.py").write_bytes(HANG)
    code, out, err = lint()
    assert code == 1
    assert "hang.py:4:5" in out
    named = {line.split(":")[0] for line in err.splitlines()}
    assert {"pipe.py", "self.py"} <= named
    if os.geteuid() != 0:
        assert "closed.py" in named


def test_what_was_found_on_the_way_and_cannot_be_read_fails_only_where_it_is_asked_for(
    lint: Lint,
) -> None:
    Path("torn.py").write_bytes(b"def (:\n")
    Path("whole.py").write_bytes(b"x = 1\n")
    assert lint()[0] == 0
    assert lint(fail_on=FailOn.unchecked)[0] == 3


# --- generated programs

WORDS = "rank dist model ddp loader sampler optimizer scaler loss x self path ema args"
NAMES = st.sampled_from(WORDS.split())
CALLED = """
    dist.barrier dist.all_reduce dist.new_group DDP DataLoader DistributedSampler torch.save
    torch.load torch.acos atexit.register dist.init_process_group f ddp.module ddp.state_dict
    loss.backward optimizer.step clip_grad_norm_ random_split copy.deepcopy mp.spawn
    scaler.scale nn.DataParallel
"""
EXPRESSIONS = st.recursive(
    NAMES
    | st.sampled_from(
        [
            "0",
            "-1",
            "None",
            "'RANK'",
            "dist.get_rank()",
            "os.environ['RANK']",
            "torch.load(path)",
            "DDP(model)",
            "DistributedSampler(x)",
            "torch.optim.SGD(x)",
            "{1, 2}",
            "f'{rank}'",
            "lambda: dist.barrier()",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, NAMES).map(lambda p: f"({p[0]}).{p[1]}"),
        st.tuples(
            st.sampled_from(CALLED.split()),
            st.lists(inner, max_size=3),
            st.sampled_from(
                ["", ", *x", ", **x", ", shuffle=True", ", sampler=x", ", async_op=True"]
            ),
        ).map(lambda p: f"{p[0]}({', '.join(p[1])}{p[2] if p[1] else p[2].lstrip(', ')})"),
        st.tuples(inner, st.sampled_from(["==", "in", "%", "and", "<", "|", "@"]), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.lists(inner, max_size=2).map(lambda p: f"[{', '.join(p)}]"),
        inner.map(lambda e: f"[y for y in ({e})]"),
    ),
    max_leaves=6,
)
HEAD = (
    "import atexit, copy, os, torch\nimport torch.distributed as dist\nfrom torch import nn\n"
    "import torch.multiprocessing as mp\nfrom torch.utils.data import random_split\n"
    "from torch.nn.utils import clip_grad_norm_\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n"
)


def indented(body: list[str]) -> str:
    return "\n".join(f"    {line}" for part in body for line in part.split("\n"))


STATEMENTS = st.recursive(
    st.one_of(
        EXPRESSIONS,
        st.tuples(NAMES, EXPRESSIONS).map(lambda p: f"{p[0]} = {p[1]}"),
        st.tuples(NAMES, EXPRESSIONS).map(lambda p: f"{p[0]} += {p[1]}"),
        st.tuples(NAMES, EXPRESSIONS).map(lambda p: f"self.{p[0]} = {p[1]}"),
        EXPRESSIONS.map(lambda e: f"assert {e}"),
        st.sampled_from(["pass", "raise ValueError", "from .x import *", "global rank, loss"]),
    ),
    lambda inner: st.one_of(
        st.tuples(EXPRESSIONS, st.lists(inner, min_size=1, max_size=3)).map(
            lambda p: f"if {p[0]}:\n{indented(p[1])}\nelse:\n{indented(p[1])}"
        ),
        st.tuples(NAMES, EXPRESSIONS, st.lists(inner, min_size=1, max_size=3)).map(
            lambda p: f"for {p[0]}, *z in {p[1]}:\n{indented(p[2])}\n    if {p[1]}: break"
        ),
        st.tuples(EXPRESSIONS, NAMES, st.lists(inner, min_size=1, max_size=2)).map(
            lambda p: f"with {p[0]} as {p[1]}:\n{indented(p[2])}"
        ),
        st.tuples(NAMES, st.lists(inner, min_size=1, max_size=3)).map(
            lambda p: (
                f"def {p[0]}(self, model, *, rank=0, **kw):\n{indented(p[1])}\n    return x(rank)"
            )
        ),
        st.tuples(NAMES, st.lists(inner, min_size=1, max_size=3)).map(
            lambda p: f"class {p[0]}(nn.Module):\n{indented(p[1])}"
        ),
        st.lists(inner, min_size=1, max_size=2).map(
            lambda p: (
                f"try:\n{indented(p)}\nexcept Exception as x:\n{indented(p)}\nfinally:\n    pass"
            )
        ),
        st.tuples(EXPRESSIONS, st.lists(inner, min_size=1, max_size=2)).map(
            lambda p: (
                f"match {p[0]}:\n    case None | True:\n        pass\n"
                f"    case [x, *y] if y:\n{indented([indented(p[1])])}"
            )
        ),
    ),
    max_leaves=12,
)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def test_a_fault_of_ours_in_one_file_hides_nothing_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def faulty(path: str, *args: Any, **options: Any) -> Judged:
        if path == "/nowhere/one.py":
            raise KeyError("ours")
        return run_and_judge(path, *args, **options)

    monkeypatch.setattr(running, "run_and_judge", faulty)
    files = {f"/nowhere/{name}.py": HANG for name in ("one", "other")}
    result = lint_files([*files], given=files)
    assert [(each.path, each.code) for each in result.diagnostics] == [
        ("/nowhere/other.py", "DDP401")
    ]
    assert [each.path for each in result.troubles] == ["/nowhere/one.py"]


def test_a_range_of_bounds_that_are_too_long_to_follow_is_a_range() -> None:
    long = " + ".join(f"x{n}" for n in range(9))
    text = f"{HEAD}import time\nfor i in range(time.time() + {long}, {long}):\n    dist.barrier()\n"
    result = lint_files(["/nowhere/x.py"], given={"/nowhere/x.py": text.encode()})
    assert not result.troubles


def test_names_that_need_each_other_are_not_looked_up_in_every_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = []

    def counted(vm: Machine, block: list[ast.stmt]) -> None:
        ran.append(block)
        run_block(vm, block)

    monkeypatch.setattr(program, "run_block", counted)
    names = "abcdefg"
    reads = f"print({', '.join(names)})"
    lines = (
        f"try:\n    raise ValueError\n    {name} = 1\nexcept ValueError:\n    {reads}\n"
        for name in names
    )
    text = f"{HEAD}{''.join(lines)}dist.barrier()\n"
    lint_files(["/nowhere/x.py"], given={"/nowhere/x.py": text.encode()})
    assert 0 < len(ran) <= len(names) ** 2


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STATEMENTS, min_size=1, max_size=5))
def test_no_program_is_too_strange_and_fixes_keep_it_one(body: list[str]) -> None:
    text = HEAD + "\n".join(body) + "\n"
    if not parses(text):
        return
    path = "/nowhere/program.py"
    result = lint_files([path], given={path: text.encode()})
    assert not result.troubles
    for unsafe in (False, True):
        fixes = fixing.fixes_of(result.diagnostics, unsafe=unsafe)
        new, count = fixing.apply(text, fixes)
        assert parses(new)
        assert (new == text) == (count == 0)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    for path in ("/nowhere/x.py", "/nowhere/x.ipynb"):
        result = lint_files([path], given={path: data})
        assert all("fault" not in each.message for each in result.troubles)
        assert len(result.troubles) <= 1


def bad_samples() -> list[str]:
    return sorted(path.name for path in SAMPLES.glob("*_bad.py"))


@pytest.mark.parametrize("name", one_in(16, bad_samples()))
def test_fixing_a_sample_cures_it_and_fixing_twice_changes_nothing(lint: Lint, name: str) -> None:
    old = (SAMPLES / name).read_text()
    Path(name).write_text(old)
    before = json.loads(lint(name, format="json", unsafe_fixes=True)[1])["findings"]
    fixable = [each for each in before if each["cure"]["edits"]]
    lint(name, fix=True, unsafe_fixes=True)
    once = Path(name).read_text()
    lint(name, fix=True, unsafe_fixes=True)
    assert Path(name).read_text() == once
    assert parses(once)
    left = json.loads(lint(name, format="json")[1])["findings"]
    assert (once != old) == bool(fixable)
    assert not [each for each in left if each["cure"]["edits"]]


@pytest.mark.parametrize("name", one_in(16, bad_samples()))
def test_there_is_an_answer_for_any_line(name: str) -> None:
    lines = range(len((SAMPLES / name).read_text().splitlines()) + 2)
    stacks = [((str(SAMPLES / name), line),) for line in lines]
    heads = Heads(stacks)
    for stack in stacks:
        assert isinstance(heads.reasons(stack), list)


def test_names_bound_to_each_other_many_times_are_followed_once() -> None:
    cycles = "".join(f"    {a} = {b}\n" for _ in range(60) for a, b in ("uv", "vw", "wu"))
    text = (
        HEAD
        + f"def main(u, v, w):\n{cycles}    ddp = DDP(u)\n    torch.save(u, w)\n"
        + "    while u == 0:\n        loss = ddp(v)\n        loss.backward()\n"
        + "        dist.broadcast(u, src=v)\n        if w:\n            break\n"
    )
    path = "/nowhere/program.py"
    started = time.process_time()
    assert not lint_files([path], given={path: text.encode()}).troubles
    assert time.process_time() - started < 20  # some tenths of a second, or for ever


def told(path: Path, text: str) -> tuple[list[tuple[str, int]], list[str]]:
    """The codes and lines of what is found in a program, and the files that were too long."""
    path.write_text(text)
    result = lint_files([str(path)])
    return [(each.code, each.line) for each in result.diagnostics], result.cut


BEHIND = """
def main(batches):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Net())
    for batch in batches:
        for half in batch:
            net(half).mean().backward()
    if dist.get_rank() == 0:
        dist.barrier()

main(torch.ones(3, 2, 4))
"""
DDP_HEAD = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
"""


@pytest.mark.thorough
def test_the_layers_of_a_deep_model_use_up_no_fuel_that_what_comes_behind_needs(
    tmp_path: Path,
) -> None:
    layers = "\n".join(
        f"class Layer{level}(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        + "".join(f"        self.part{part} = Layer{level - 1}()\n" for part in range(7))
        + "    def forward(self, x, mask=None):\n"
        + "".join(f"        x = x + self.part{part}(x, mask)\n" for part in range(7))
        + "        return x\n"
        for level in range(1, 5)
    )
    first = (
        "class Layer0(torch.nn.Module):\n    def forward(self, x, mask=None):\n"
        "        if mask is not None:\n            x = x * mask\n"
        "        return torch.relu(x.view(-1, 4) * 2 + 1).reshape(x.shape)\n"
    )
    text = DDP_HEAD + first + layers + "Net = Layer4\n" + BEHIND
    barrier = text.splitlines().index("        dist.barrier()") + 1
    found, cut = told(tmp_path / "train.py", text)
    assert (("DDP401", barrier) in found, cut) == (True, [])


@pytest.mark.thorough
def test_what_is_looked_at_in_every_loop_does_not_keep_a_program_of_ranks_from_its_end(
    tmp_path: Path,
) -> None:
    looks = "def look0(x):\n    with open(str(x)) as file:\n        return file.read()\n" + "".join(
        f"def look{n + 1}(x):\n    look{n}(x[0])\n    look{n}(x[1])\n" for n in range(12)
    )
    text = DDP_HEAD + "Net = torch.nn.Identity\n" + looks
    text += BEHIND.replace("            net(", "            look12(half)\n            net(")
    barrier = text.splitlines().index("        dist.barrier()") + 1
    found, cut = told(tmp_path / "train.py", text)
    assert (("DDP401", barrier) in found, cut) == (True, [])


def test_a_function_that_calls_itself_in_comprehensions_is_followed_a_few_times(
    tmp_path: Path,
) -> None:
    text = DDP_HEAD + (
        "class Net(torch.nn.Linear):\n    def __init__(self):\n        super().__init__(4, 4)\n"
        "def each(part, do):\n"
        "    if isinstance(part, tuple):\n        return tuple(each(x, do) for x in part)\n"
        "    if isinstance(part, list):\n        return [each(x, do) for x in part]\n"
        "    if isinstance(part, dict):\n        return {k: each(x, do) for k, x in part.items()}\n"
        "    return do(part)\n"
    )
    text += BEHIND.replace("net(half)", "net(each(half, lambda x: x.float()))")
    barrier = text.splitlines().index("        dist.barrier()") + 1
    found, cut = told(tmp_path / "train.py", text)
    assert (("DDP401", barrier) in found, cut) == (True, [])


def test_a_layer_that_communicates_is_not_taken_for_its_like_that_only_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Machine.__init__

    def begin_short(vm: Machine, *args: Any) -> None:
        begin(vm, *args)
        vm.saving = 10 * vm.fuel

    monkeypatch.setattr(Machine, "__init__", begin_short)
    text = DDP_HEAD + (
        "class Part(torch.nn.Module):\n    def __init__(self, together):\n"
        "        super().__init__()\n        self.together = together\n"
        "    def forward(self, x):\n        if self.together:\n            dist.all_reduce(x)\n"
        "        return x * 2\n"
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "".join(f"        self.part{n} = Part({n == 11})\n" for n in range(12))
        + "    def forward(self, x):\n"
        + "".join(f"        x = self.part{n}(x)\n" for n in range(12))
        + "        return x\n"
        "def main():\n    dist.init_process_group('gloo')\n    net = Net()\n"
        "    if dist.get_rank() == 0:\n        net(torch.ones(3))\n"
        "main()\n"
    )
    found, _ = told(tmp_path / "train.py", text)
    assert ("DDP401", text.splitlines().index("        net(torch.ones(3))") + 1) in found

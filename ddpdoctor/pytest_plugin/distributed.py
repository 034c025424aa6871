"""A marked test, in the process that collected it: launch it, follow it, tell how it ended."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from ddpdoctor.evidence import Fate
from ddpdoctor.launch import ForkServer, Job, LaunchError, NoRoom, WorkerGroup, gpus
from ddpdoctor.pytest_plugin.judgement import Ending, judge
from ddpdoctor.pytest_plugin.verdict import Verdict

_GRACE = 2.0
"""Seconds for the others to end when one rank has ended otherwise than by passing."""

_LOOK = 0.05
"""Seconds between two looks at what the ranks do."""

_MACHINERY = ("/_pytest/", "/pluggy/", "/ddpdoctor/", "<frozen runpy>", "/threading.py")
_server = pytest.StashKey[ForkServer]()
_INSIDE = "ddpdoctor.pytest_plugin.inside"
# Options that decide what is collected or reported, or that a rank must not share with its peers.
_OURS: dict[str, Any] = {
    "keyword": "",
    "markexpr": "",
    "deselect": [],
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "maxfail": 0,
    "xmlpath": None,
    "capture": "no",
    "usepdb": False,
    "trace": False,
    "numprocesses": None,
    "dist": "no",
    "tx": [],
}


@dataclass(frozen=True)
class Terms:
    """What a marker asks for."""

    nproc: int = 2
    backend: str | None = "gloo"
    timeout: float = 30.0
    watch: bool = True
    gpus: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.nproc, int) or self.nproc < 1:
            raise ValueError(f"nproc must be a number of ranks, 1 or more, and is {self.nproc!r}")
        if not isinstance(self.timeout, int | float) or self.timeout <= 0:
            raise ValueError(f"timeout must be a number of seconds, and is {self.timeout!r}")


def terms_of(item: pytest.Item) -> Terms:
    """Read the markers of a test. Raises TypeError or ValueError if they make no sense."""
    terms: dict[str, Any] = {}
    if (mark := item.get_closest_marker("multigpu")) is not None:
        terms = multigpu(*mark.args, **mark.kwargs)
    if (mark := item.get_closest_marker("distributed")) is not None:
        terms |= distributed(*mark.args, **mark.kwargs)
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "_nproc" in callspec.params:
        terms["nproc"] = callspec.params["_nproc"]
    return Terms(**terms)


def multigpu(
    n: int = 2, backend: str | None = "nccl", timeout: float = 30.0, watch: bool = True
) -> dict[str, Any]:
    """The terms of this marker."""
    return {"nproc": n, "gpus": n, "backend": backend, "timeout": timeout, "watch": watch}


def distributed(
    nproc: int = 2, backend: str | None = "gloo", timeout: float = 30.0, watch: bool = True
) -> dict[str, Any]:
    """The terms of this marker; beside `multigpu`, all but the number of GPUs."""
    return {"nproc": nproc, "backend": backend, "timeout": timeout, "watch": watch}


def take_over(item: pytest.Item) -> None:
    """Have an item run on ranks. Its skip and xfail marks, and all of pytest's reporting, stay."""
    item.setup = lambda: None  # type: ignore[method-assign]  # fixtures are the ranks' business
    item.teardown = lambda: None  # type: ignore[method-assign]
    item.runtest = lambda: _run(item)  # type: ignore[method-assign]


def _run(item: pytest.Item) -> None:
    try:
        terms = terms_of(item)
    except (TypeError, ValueError) as error:
        raise _failure(f"marker of {item.name}: {error}") from None
    if len(gpus.visible()) < terms.gpus:
        reason = f"needs {terms.gpus} GPUs, there are {len(gpus.visible())}"
        raise pytest.skip.Exception(reason, _use_item_location=True)
    try:
        endings, verdict = _launch(item, terms)
    except NoRoom as error:
        raise _failure(f"{error} (--force-ranks tries it all the same)") from None
    except (LaunchError, gpus.NoLease) as error:
        raise _failure(str(error)) from None
    judgement = judge(endings, terms.timeout, verdict)
    if judgement.outcome == "skipped":
        raise pytest.skip.Exception(judgement.text, _use_item_location=True)
    if judgement.outcome == "xfailed":
        raise pytest.xfail.Exception(judgement.text, pytrace=False)
    if judgement.outcome == "failed":
        raise _failure(judgement.text)


def _failure(text: str) -> BaseException:
    return pytest.fail.Exception(text, pytrace=False)


def _launch(item: pytest.Item, terms: Terms) -> tuple[list[Ending], str]:
    """How each rank ended, and what the watch over them says of a test that failed."""
    server = _server_of(item.config)
    run_dir = server.fresh_run_dir()
    with _gpus_for(terms) as env:
        job = Job(
            target=f"{_INSIDE}:run",
            nproc=terms.nproc,
            run_dir=run_dir,
            kwargs={
                "node": _absolute_node(item),
                "backend": terms.backend,
                "options": _options(item.config),
                "run_dir": str(run_dir),
            },
            env=env,
            cwd=item.config.invocation_params.dir,
            watch=terms.watch,
        )
        with server.launch(job) as world, contextlib.closing(Verdict(world)) as verdict:
            stacks = _follow(world, verdict, time.monotonic() + terms.timeout)
            world.kill()
            if not world.ranks:
                raise LaunchError(f"no rank was started within {terms.timeout:g} s")
            endings = [_ending(world, rank.rank, stacks) for rank in world.ranks]
            passed = all(ending.outcome == "passed" for ending in endings)
            said = verdict.text(world.poll(), passed) if terms.watch else ""
    for ending in endings:
        _add_sections(item, world, ending)
    shutil.rmtree(run_dir, ignore_errors=True)
    return endings, said


def _server_of(config: pytest.Config) -> ForkServer:
    if _server not in config.stash:
        # What is imported here is not imported by every rank of every test.
        plugins = [plugin for plugin, _ in config.pluginmanager.list_plugin_distinfo()]
        modules = {plugin.__name__ for plugin in plugins if isinstance(plugin, ModuleType)}
        config.stash[_server] = ForkServer(
            preload=[_INSIDE, "ddpdoctor.watch.watching", *sorted(modules)],
            force=config.getoption("--force-ranks"),
        )
        config.add_cleanup(config.stash[_server].close)
    return config.stash[_server]


@contextlib.contextmanager
def _gpus_for(terms: Terms) -> Iterator[dict[str, str]]:
    if not terms.gpus:
        yield {}
        return
    with gpus.lease(terms.gpus) as names:
        yield {"CUDA_VISIBLE_DEVICES": ",".join(names)}


def _absolute_node(item: pytest.Item) -> str:
    _, _, names = item.nodeid.partition("::")
    return f"{item.path}::{names}"


def _options(config: pytest.Config) -> dict[str, Any]:
    """The command line as it was understood here, where it can be told to another process."""
    options = {name: value for name, value in vars(config.option).items() if _is_json(value)}
    ini = str(config.inipath) if config.inipath else None
    del options["file_or_dir"]
    return {**options, **_OURS, "rootdir": str(config.rootpath), "inifilename": ini}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _follow(world: WorkerGroup, verdict: Verdict, deadline: float) -> dict[int, str]:
    """Wait for the end. Returns the stacks of the ranks that had to be ended."""
    early = False
    while not world.wait_for_news(min(_LOOK, max(0.0, deadline - time.monotonic()))):
        if not early and any(_ended_early(world, fate) for fate in world.poll()):
            early, deadline = True, min(deadline, time.monotonic() + _GRACE)
        hangs = not early and verdict.is_hang(world, _over(world), deadline)
        if hangs or time.monotonic() >= deadline:
            stacks = world.stacks()
            world.kill()
            return stacks
    return {}


def _ended_early(world: WorkerGroup, fate: Fate) -> bool:
    return _report(world, fate.rank).get("outcome") != "passed" or fate.exit_code != 0


def _over(world: WorkerGroup) -> set[int]:
    return {rank for rank in range(world.job.nproc) if world.job.rank_file(rank, "report").exists()}


def _report(world: WorkerGroup, rank: int) -> dict[str, str]:
    file = world.job.rank_file(rank, "report")
    report: dict[str, str] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return report


def _ending(world: WorkerGroup, rank: int, stacks: dict[int, str]) -> Ending:
    """What became of the test on one rank, from its own report and from how its process ended."""
    fate = next(fate for fate in world.poll() if fate.rank == rank)
    report = _report(world, rank)
    if report.get("outcome", "passed") != "passed":
        return Ending(rank, time=fate.time, **report)  # type: ignore[arg-type]
    if fate.killed_by_us and not report:
        stack = _without_machinery(stacks.get(rank, "no stack could be had"))
        return Ending(rank, "stuck", "still running", stack)
    if not fate.killed_by_us and (fate.exit_code != 0 or not report):
        return Ending(rank, "died", _death(fate, bool(report)), _said(world, rank), fate.time)
    return Ending(rank, "passed")


_OF_A_THREAD = ("Thread 0x", "Current thread 0x")
"""How faulthandler begins the stack of a thread."""


def _without_machinery(stack: str) -> str:
    def is_machinery(line: str) -> bool:
        return line.startswith("  File") and any(name in line for name in _MACHINERY)

    threads = [
        [line for line in thread.splitlines() if not is_machinery(line)]
        for thread in stack.split("\n\n")
    ]
    return "\n\n".join("\n".join(lines) for lines in threads if not _is_bare(lines))


def _is_bare(lines: list[str]) -> bool:
    """A thread, of ours or of the machinery's, of which nothing is left."""
    return len(lines) == 1 and lines[0].startswith(_OF_A_THREAD)


def _death(fate: Fate, over: bool) -> str:
    after = "after the test had passed" if over else "before the test was over"
    if fate.signal is not None:
        return f"killed by {signal.Signals(fate.signal).name} {after}"
    return f"exited with status {fate.exit_code} {after}"


def _said(world: WorkerGroup, rank: int) -> str:
    said = world.job.rank_file(rank, "stderr").read_text("utf-8", errors="replace")
    return _without_machinery(said).strip()


def _add_sections(item: pytest.Item, world: WorkerGroup, ending: Ending) -> None:
    # What a rank that died had said on stderr is the body of the report already.
    for stream in ("stdout",) if ending.outcome == "died" else ("stdout", "stderr"):
        text = world.job.rank_file(ending.rank, stream).read_text("utf-8", errors="replace")
        if text:
            item.add_report_section("call", f"rank {ending.rank} {stream}", text)

"""A marked test, inside one of its ranks: a pytest session of this one test."""

from __future__ import annotations

import json
import os
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from _pytest._io import TerminalWriter
from _pytest.assertion.rewrite import AssertionRewritingHook
from _pytest.config import get_config
from _pytest.main import wrap_session

from ddpdoctor.pytest_plugin import SHARED_PATH

get_config()  # imports pytest's own plugins, in the server and not in every rank

_NO_SUMMARY = 100
_RANKING = ("passed", "skipped", "xfailed", "failed")


def run(node: str, backend: str | None, options: dict[str, Any], run_dir: str) -> None:
    """Run the test `node` here, write down what came of it, and leave when all ranks may."""
    folder = Path(run_dir)
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    report = _run_session(node, backend, options, folder, rank)
    unfinished = folder / f"rank-{rank}.report-part"
    unfinished.write_text(json.dumps(report), encoding="utf-8")
    unfinished.replace(folder / f"rank-{rank}.report")
    if report["outcome"] == "passed":
        _wait_for_all(folder, world_size)


def _run_session(
    node: str, backend: str | None, options: dict[str, Any], folder: Path, rank: int
) -> dict[str, str]:
    # The server has imported ddpdoctor before this session could rewrite its assertions. It has
    # none, and under -W error the warning would end the session.
    AssertionRewritingHook._warn_already_imported = lambda *_: None  # type: ignore[method-assign]
    options["basetemp"] = str(folder / f"rank-{rank}.tmp")
    cache = f"cache_dir={folder / f'rank-{rank}.cache'}"
    options["override_ini"] = [*(options.get("override_ini") or []), cache]
    shared = folder / "shared"
    shared.mkdir(exist_ok=True)
    recorder = _Recorder(backend)
    try:
        config = pytest.Config.fromdictargs(
            options, [node, "-p", "no:xdist", "-p", "no:pytest_cov"]
        )
        config.stash[SHARED_PATH] = shared
        config.pluginmanager.register(recorder)
        wrap_session(config, _run_loop)
    except pytest.UsageError as error:
        recorder.add("failed", f"the test was not found on this rank: {error}")
    return recorder.report()


def _run_loop(config: pytest.Config, session: pytest.Session) -> int:
    config.hook.pytest_collection(session=session)
    config.hook.pytest_runtestloop(session=session)
    # Under one of pytest's own statuses every plugin would now sum up the session, at length.
    return _NO_SUMMARY


def _wait_for_all(folder: Path, world_size: int) -> None:
    # A rank that left while others still communicate with it would fail them. There is no
    # collective here and no destroy_process_group: on the failure path they hang, and beside a live
    # DistributedDataParallel destroying the group can deadlock inside torch.
    while len(list(folder.glob("rank-*.report"))) < world_size:
        time.sleep(0.005)


class _Recorder:
    """The plugin of a rank's session: joins the process group, notes how the phases ended."""

    def __init__(self, backend: str | None) -> None:
        self._backend = backend
        self._phases: list[dict[str, str]] = []

    def add(self, outcome: str, headline: str = "", details: str = "") -> None:
        self._phases.append({"outcome": outcome, "headline": headline, "details": details})

    def report(self) -> dict[str, str]:
        """The worst of the phases."""
        if not self._phases:
            self.add("failed", "the test did not run on this rank")
        return max(self._phases, key=lambda phase: _RANKING.index(phase["outcome"]))

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        # Standard output belongs to the test alone.
        config.get_terminal_writer()._file = open(os.devnull, "w")  # noqa: PTH123, SIM115

    def pytest_runtest_setup(self) -> None:
        """Before the fixtures, which may communicate, and after the marks that skip a test."""
        if self._backend is None:
            return
        import torch
        import torch.distributed as dist

        if "nccl" in self._backend:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        dist.init_process_group(self._backend)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.add("failed", "the test could not be collected", _text(report))

    def pytest_internalerror(self, excrepr: object) -> None:
        self.add("failed", "pytest itself failed on this rank", str(excrepr))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.add("failed", f"{excinfo.typename}: {excinfo.value}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        is_marked_xfail = hasattr(report, "wasxfail")
        text = _text(report)
        if report.skipped and is_marked_xfail:
            self.add("xfailed", report.wasxfail)
        elif report.skipped:
            self.add("skipped", _reason(report))
        elif report.failed and not text.startswith("[XPASS(strict)]"):
            logs = [f"{name}:\n{content}" for name, content in report.sections]
            during = "" if report.when == "call" else f"{report.when} of the fixtures: "
            self.add("failed", during + _first_line(report), "\n\n".join([text, *logs]))
        elif report.when == "call":
            # That the test was expected to fail is for the whole of it to say, not for one rank.
            self.add("passed")


def _reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return reason.removeprefix("Skipped: ")


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else _text(report)
    return text.partition("\n")[0]


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    """What longreprtext would be if it kept the indentation of its first line."""
    written = StringIO()
    report.toterminal(TerminalWriter(written))
    return written.getvalue().strip("\n")

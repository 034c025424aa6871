"""Runs the reproducers and judges each variant by what the diagnosis says about it.

A broken form counts as recognised only when the diagnosis names that very pitfall, on the expected
ranks and on a marked line. Advice and fixes hold only when every rank ends well, which their own
assertions make hard, and the diagnosis is clean.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ddpdoctor.catalog import Finding, Pitfall, Status, Variant, Verdict
from ddpdoctor.check.telling import CheckReport
from ddpdoctor.evidence import named
from ddpdoctor.launch import ForkServer, LaunchError, Lost, NoRoom
from ddpdoctor.launch.capacity import is_full, kills_for_memory, refused
from ddpdoctor.launch.gpus import visible
from ddpdoctor.lint.linter import lint
from ddpdoctor.lint.rule import Diagnostic
from ddpdoctor.trial import Commanded, Ending, Forked, Setting, search_path

_POLL = 0.02
_MOMENT = 0.5
"""Seconds that forked ranks compute: most are born, trained and gone after half of them."""
_LONG = 5.0
"""Seconds after which ranks are not waited for that can write no more: nothing would be proven."""
_PATIENCE = 20.0
"""Seconds, of the whole check, to wait for room that was there at the start and is taken now."""
_TORN_DOWN = 3
"""How often a variant is launched again because torch's teardown, and not the script, failed."""
_MOST = 64
"""Launches at a time on a large machine: each has files open for every rank."""
_PRELOAD = (
    "pydantic",
    "ddpdoctor.reproducer",
    "ddpdoctor.stack.checkpoint",
    "ddpdoctor.stack.evaluation",
    "ddpdoctor.stack.samplers",
    "ddpdoctor.stack.trainer",
    "ddpdoctor.watch.watching",
)
"""What the ranks import beside torch: imported once, not in every rank."""

OnStart = Callable[[str, str], None]
OnVerdict = Callable[[Verdict], None]


@dataclass(frozen=True)
class CheckOptions:
    """What `ddpdoctor check` was asked for."""

    nproc: int = 4
    backend: Literal["auto", "gloo", "nccl"] = "auto"
    """auto is gloo, but for the pitfalls that only NCCL can show."""
    suite: Literal["all", "quick"] = "all"
    """quick performs each failure and its fixes: no advice, nothing that a launcher must start."""
    jobs: int | None = None
    """At most so many launches at a time; by default so many that the CPUs are busy."""
    run_dir: Path | None = None
    """Where the ranks' output and evidence are kept; by default nowhere."""
    force: bool = False
    """Start ranks whether or not this machine seems to have what they need."""


def check(
    pitfalls: Sequence[Pitfall], options: CheckOptions, on_verdict: OnVerdict, on_start: OnStart
) -> CheckReport:
    """Run every variant of the pitfalls, several at a time, and report in the catalogue's order.

    `on_start` is called with code and variant, `on_verdict` as each is judged. Raises LaunchError
    if ranks cannot be started at all or would be without NumPy, and NoRoom, before anything is, if
    this machine has not got what so many of them need.
    """
    if find_spec("numpy") is None:
        raise LaunchError(
            "there is no NumPy, without which torch sends no object between ranks: most fixes "
            "would fail for that alone; pip install numpy"
        )
    started, clock = datetime.now(UTC), time.monotonic()
    verdicts: list[Verdict] = []
    everything = sum(len(pitfall.variants) for pitfall in pitfalls)
    if options.suite == "quick":
        pitfalls = list(_quick(pitfalls))
    left_out = everything - sum(len(pitfall.variants) for pitfall in pitfalls)

    def note(verdict: Verdict) -> None:
        verdicts.append(verdict)
        on_verdict(verdict)

    todo: list[tuple[Pitfall, Variant]] = []
    for pitfall in pitfalls:
        for variant in pitfall.variants:
            if reason := (
                _cannot(pitfall, options)
                or _speaks_of_another(variant, options)
                or _lacks_launcher(variant)
            ):
                note(_not_checked(pitfall, variant, reason))
            else:
                todo.append((pitfall, variant))
    random.Random(0).shuffle(todo)  # those that wait, mostly neighbours, beside those that compute
    todo.sort(key=lambda each: -each[1].launches)  # one after the other: nothing else takes so long
    launcher_seconds = 0.0
    if todo:
        with ForkServer(_PRELOAD, force=options.force) as server:
            try:
                server.judge(options.nproc)
            except NoRoom as error:
                raise NoRoom(f"{error} (--force tries it all the same)") from None
            folder = _folder(options.run_dir) or server.fresh_run_dir()
            # Launchers last, and apart: they are heavy, and what races does so undisturbed.
            for launched in (False, True):
                began = time.monotonic()
                phase = [each for each in todo if bool(each[1].launch) == launched]
                for verdict in _perform(server, folder, phase, options, on_start):
                    note(verdict)
                launcher_seconds = time.monotonic() - began
    return CheckReport.of(
        pitfalls,
        verdicts,
        backend=_backend(options),
        nproc=options.nproc,
        started=started,
        seconds=round(time.monotonic() - clock, 2),
        launcher_seconds=round(launcher_seconds, 2),
        left_out=left_out,
    )


def _quick(pitfalls: Sequence[Pitfall]) -> Iterator[Pitfall]:
    for pitfall in pitfalls:
        if kept := tuple(
            variant
            for variant in pitfall.variants
            if variant.kind != "documented" and not variant.launch
        ):
            yield pitfall.model_copy(update={"variants": kept})


def _perform(
    server: ForkServer,
    folder: Path,
    todo: list[tuple[Pitfall, Variant]],
    options: CheckOptions,
    on_start: OnStart,
) -> Iterator[Verdict]:
    """Keep several launches going, not more than asked for, and yield the verdicts as they come.

    One that has not ended after a moment mostly waits, for a proof of a deadlock or for a time to
    be up, and does not keep another from starting.
    """
    computing = len(os.sched_getaffinity(0)) + 2
    at_most = min(options.jobs or min(4 * computing, _MOST), _readable(options.nproc))
    waiting, running = list(todo), list[_Trial]()
    patience = _PATIENCE
    setting = Setting(server, options.nproc, _backend(options))
    try:
        while waiting or running:
            while waiting and len(running) < at_most and _busy(running) < computing:
                pitfall, variant = waiting[0]
                try:
                    trial = _Trial(setting, folder, pitfall, variant)
                except NoRoom as error:
                    if running:
                        break  # until one of them has ended
                    if patience > 0:
                        patience -= _POLL
                        break  # until somebody else needs less
                    yield _not_checked(pitfall, variant, str(error))
                else:
                    on_start(pitfall.code, variant.name)
                    running.append(trial)
                del waiting[0]
            for trial in running:
                others = any(not each.waits for each in running if each is not trial)
                if (verdict := trial.poll(room_may_come=others)) is not None:
                    yield verdict
            running = [trial for trial in running if trial.verdict is None]
            time.sleep(_POLL)
    finally:
        for trial in running:
            trial.close()


def _readable(nproc: int) -> int:
    """How many launches' logs, one a rank, may be open at a time, beside what we have open."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(1, (descriptors - 32) // (nproc + 4))


def _busy(running: list[_Trial]) -> int:
    return sum(trial.is_busy for trial in running)


class _Trial:
    """One variant under way: launched, followed, ended, judged; again if it is a race."""

    def __init__(self, setting: Setting, folder: Path, pitfall: Pitfall, variant: Variant) -> None:
        self.verdict: Verdict | None = None
        self._setting, self._folder = setting, folder
        self._pitfall, self._variant = pitfall, variant
        self._began = time.monotonic()
        self._launches = self._failed = self._torn_down = 0
        self._patient_until = 0.0
        """When it is to be launched again, how long it waits for room."""
        self._launch()

    def _launch(self) -> None:
        self._launched = time.monotonic()
        number = self._launches + self._torn_down + 1
        name = f"{self._pitfall.code}-{self._variant.name}-{number}"
        self._killed_before = kills_for_memory()
        self._run_dir = run_dir = self._folder / name
        try:
            run_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoRoom(f"there is no room for {run_dir}: {error.strerror}") from error
        kind = Commanded if self._variant.launch else Forked
        self._running = kind(self._setting, self._pitfall, self._variant, run_dir)
        self._launches += 1
        self._patient_until = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether it computes rather than waits, as far as one can tell from outside."""
        begins_slowly = self._variant.launch or self._setting.begins_slowly
        return bool(begins_slowly) or time.monotonic() - self._launched < _MOMENT

    @property
    def waits(self) -> bool:
        """Whether it is to be launched again, and nothing of it runs."""
        return bool(self._patient_until)

    def close(self) -> None:
        """End the launch, if it has not ended."""
        self._running.close()

    def poll(self, *, room_may_come: bool) -> Verdict | None:
        """Look at the launch; the verdict once there is one.

        It waits for room as long as other launches run that take some.
        """
        if self.waits and room_may_come:
            self._patient_until = time.monotonic() + _PATIENCE
        try:
            verdict = self._look()
        except (NoRoom, Lost) as error:
            self.close()
            verdict = _not_checked(self._pitfall, self._variant, str(error))
        if verdict is not None:
            seconds = round(time.monotonic() - self._began, 3)
            self.verdict = verdict.model_copy(update={"seconds": seconds})
        return self.verdict

    def _look(self) -> Verdict | None:
        if self.waits:
            self._launch_again()
            return None
        ending = self._running.poll()
        if ending is None:
            if time.monotonic() - self._launched > _LONG:
                self._expect_room()
            return None
        self.close()
        verdict = judge(self._pitfall, self._variant, ending)
        is_seen = any(each.code == self._pitfall.code for each in verdict.findings)
        if verdict.failed_launches and not (is_seen and verdict.status == "recognised"):
            self._blame_nobody_for_want()
        if verdict.status in ("fails", "misdiagnosed") and self._was_torn_down(ending):
            self._torn_down += 1
            self._launches -= 1
            self._patient_until = time.monotonic() + _PATIENCE
            return None
        self._failed += verdict.failed_launches
        decided = verdict.status in ("recognised", "aid", "fails")
        if not decided and self._launches < self._variant.launches:
            self._patient_until = time.monotonic() + _PATIENCE
            return None
        counts = {"launches": self._launches, "failed_launches": self._failed}
        return verdict.model_copy(update=counts)

    def _was_torn_down(self, ending: Ending) -> bool:
        """Whether the launch failed of what is no mistake of the script: torch's own teardown.

        All work was done before it, but what the ranks would assert behind it is not known.
        """
        found = ending.findings
        harmless = bool(found) and all(each.severity == "info" for each in found)
        own = any(each.code == self._pitfall.code for each in found)
        return harmless and not own and self._torn_down < _TORN_DOWN

    def _launch_again(self) -> None:
        try:
            self._launch()
        except NoRoom:
            if time.monotonic() > self._patient_until:
                raise

    def _blame_nobody_for_want(self) -> None:
        """Raise NoRoom if ranks may have failed because this machine ran out of something."""
        self._expect_room()
        if kills_for_memory() > self._killed_before:
            raise NoRoom("the kernel killed processes meanwhile, because memory was short")
        if words := refused(sorted(self._run_dir.glob("rank-*.stderr"))):
            raise NoRoom(f"a rank was refused memory or a thread: {words}")

    def _expect_room(self) -> None:
        """Raise NoRoom if ranks can write no more."""
        if is_full(self._run_dir):
            raise NoRoom(f"there is no room left for what ranks write in {self._folder}")


def judge(pitfall: Pitfall, variant: Variant, ending: Ending) -> Verdict:
    """What one launch of a variant shows."""
    failed = bool(ending.failure) or any(f.severity == "error" for f in ending.findings)
    warned = [f for f in ending.findings if f.severity == "warning"]
    status: Status
    legible = ""
    if variant.kind == "broken":
        named = any(_names(pitfall, variant, finding, ending) for finding in ending.findings)
        other = any(f.is_narrow and f.severity != "info" for f in ending.findings)
        if failed and not named and not other:
            legible = _read_off_source(pitfall, variant)
        if named or legible:
            status = "recognised"
        else:
            status = "misdiagnosed" if failed else "not reproduced"
    elif failed:
        status = "aid" if variant.promises == "an aid" else "fails"
    else:
        status = "in part" if warned else "holds"
    if failed or warned:
        told = _told(ending.findings[0]) if ending.findings else ending.failure
        evidence = f"{legible}; {told}" if legible else told
        if status == "misdiagnosed" and ending.failure not in told:
            evidence += f"; {ending.failure}"  # who was killed beside it is no part of the failure
    else:
        evidence = f"{ending.well}, every assertion held"
    if ending.measured:
        evidence = f"{evidence}; measured: {ending.measured}"
    return Verdict(
        code=pitfall.code,
        variant=variant.name,
        kind=variant.kind,
        status=status,
        summary=variant.summary,
        evidence=evidence,
        source=variant.source,
        findings=tuple(ending.findings),
        failed_launches=int(failed),
        launches=1,
    )


def _names(pitfall: Pitfall, variant: Variant, finding: Finding, ending: Ending) -> bool:
    """Whether a finding is this pitfall, on the expected ranks and a marked line."""
    everyone = set(range(ending.ranks))
    expected = {
        "all": set(finding.ranks) == everyone,
        "nonzero": bool(finding.ranks) and 0 not in finding.ranks,
        "any": bool(finding.ranks),
    }
    wanted = variant.ranks
    right_ranks = expected[wanted] if isinstance(wanted, str) else {*wanted} == {*finding.ranks}
    place = finding.place
    right_line = (
        place is not None
        and Path(place.file).name == pitfall.proof.name
        and place.line in variant.culprits
    )
    return finding.code == pitfall.code and right_ranks and right_line


def _read_off_source(pitfall: Pitfall, variant: Variant) -> str:
    """What lint says about a marked line, where ranks leave no trace of the bug; or ""."""
    for each in _read(pitfall.proof):
        if each.code == pitfall.code and each.line in variant.culprits:
            return f"read off {pitfall.proof.name}:{each.line}: {each.message}"
    return ""


@cache
def _read(proof: Path) -> tuple[Diagnostic, ...]:
    return tuple(lint([str(proof)]).diagnostics)


def _told(finding: Finding) -> str:
    """A finding in one line. A broken assertion is told as what it is: an invariant, not a code."""
    who = named(finding.ranks) if finding.ranks else "no single rank"
    at = f" at {finding.place}" if finding.place else ""
    if finding.cause.startswith("AssertionError: "):
        return f"{finding.cause.removeprefix('AssertionError: ')} ({who}{at})"
    return f"{finding.code} {finding.title}, {who}{at}: {finding.cause}"


def _not_checked(pitfall: Pitfall, variant: Variant, reason: str) -> Verdict:
    return Verdict(
        code=pitfall.code,
        variant=variant.name,
        kind=variant.kind,
        status="not checked",
        summary=variant.summary,
        evidence=reason,
        source=variant.source,
    )


def _cannot(pitfall: Pitfall, options: CheckOptions) -> str:
    """Why this pitfall cannot be performed here, or ""."""
    needs_gpus = _backend(options) == "nccl" or not {"nccl", "gpu"}.isdisjoint(pitfall.needs)
    if needs_gpus and (gpus := len(visible())) < options.nproc:
        return f"NCCL needs {options.nproc} GPUs for {options.nproc} ranks, {gpus} found"
    if "root" in pitfall.needs and os.geteuid() != 0:
        return "needs root"
    return next(filter(None, (_without(what) for what in pitfall.needs)), "")


def _speaks_of_another(variant: Variant, options: CheckOptions) -> str:
    """Why advice says nothing about the backend that the ranks have here, or ""."""
    if variant.speaks_of in ("", _backend(options)):
        return ""
    return f"it speaks of {variant.speaks_of}, and the ranks here are on {_backend(options)}"


_MADE_BY = {
    "namespaces": (
        "network namespaces",
        ("unshare", "--net", "ip", "link", "set", "lo", "up"),
    ),
    "mounts": ("a mount namespace", ("unshare", "--mount", "--propagation=private", "true")),
}
"""What stands in for a second host and for a container's /dev/shm, and how one is made.

Root alone does not make them: in a container as Docker starts it, and in a chroot, it may not.
"""


@cache
def _without(what: str) -> str:
    """Why something that a pitfall needs cannot be made here, or ""."""
    if what not in _MADE_BY:
        return ""
    name, command = _MADE_BY[what]
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"needs {name}, and unshare cannot be started: {error.strerror}"
    if made.returncode == 0:
        return ""
    return f"needs {name}, which cannot be made here: {made.stderr.strip()}"


def _lacks_launcher(variant: Variant) -> str:
    if not variant.launch or shutil.which(variant.launcher, path=search_path()):
        return ""
    return f"there is no command {variant.launcher!r}"


def _backend(options: CheckOptions) -> str:
    return "nccl" if options.backend == "nccl" else "gloo"


def _folder(kept: Path | None) -> Path | None:
    """The folder of all launches, if it is to be kept."""
    if kept is None:
        return None
    kept.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"check-{datetime.now():%Y%m%d-%H%M%S}-", dir=kept))

"""`ddpdoctor run` over a job of three ranks, disturbed."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.chaos.job import STEPS
from tests.chaos.scene import (
    Case,
    Scene,
    allow_descriptors,
    command_line,
    obey_permissions,
    on_busy_cores,
    with_memory_taken,
)
from tests.chaos.warm import JOB, LAUNCHER
from tests.patience import within

RANKS = 3
TRAINED = sorted(f"rank {rank} trained" for rank in range(RANKS))
REPORT = ("--format=json", "-o", "report.json")
ENDS = {
    "raise": "DDP404",
    "exit": "DDP400",
    "leave": "DDP410",
    **dict.fromkeys(("segv", "kill", "abrt"), "DDP400"),
    "memory": "DDP404",  # raised where the rank's condition leads
    "barrier": "DDP401",
    "descriptors": "DDP600",
}
UNSEEN = ("exit", "leave")
"""Of these the line where a rank was last seen is all that anybody knows."""


def cases() -> Iterator[Callable[[Any], Case]]:
    """One maker of each kind, which draws the details."""
    for what in ENDS:
        yield partial(_ends, what)
    for disturb in (_nothing, _pauses, _holds_the_gil):
        yield partial(_well, disturb)
    for what in ("stopped", "spin", "long-gil"):
        yield partial(_stalls, what)
    yield from (_signalled, _doctor_killed, _launcher_killed)
    yield from (_folder_deleted, _folder_read_only, _disk_full, _few_descriptors)
    yield from (_closed_streams, _two_doctors, _impatient)
    yield _memory_taken
    for what in ("barrier", "raise", "well"):
        yield partial(_busy, what)


def _doctor(what: str, culprit: int, when: int, *options: str) -> Callable[[Scene], int]:
    job = [LAUNCHER, str(RANKS), what, str(culprit), str(when)]
    return lambda scene: command_line("run", *REPORT, *options, "--", *job)


def _draw(random: Any) -> tuple[int, int]:
    return random.randrange(RANKS), random.randrange(1, STEPS - 1)


def _idle(scene: Scene) -> None:
    """No disturbance."""


def _ends(what: str, random: Any) -> Case:
    culprit, when = _draw(random)
    return Case(
        f"run: {what}",
        _doctor(what, culprit, when),
        _idle,
        partial(_names, what, culprit),
    )


def _names(what: str, culprit: int, scene: Scene) -> Iterator[str]:
    """The culprit is named, with the right code and line, and the exit code is as promised."""
    if (report := scene.report()) is None:
        yield f"no report: {scene.text('err')[-300:]}"
        return
    ended = report["ended_by"] == "doctor"
    if scene.status != (1 if ended else int(scene.text("status") or -1)):
        launcher = f"ended by {report['ended_by']}, the launcher's {scene.text('status')}"
        yield f"exit code {scene.status}, {launcher}"
    findings = [finding for finding in report["findings"] if finding["severity"] == "error"]
    if not findings:
        yield f"nothing was found, not seen: {report.get('not_seen')}"
        return
    first = findings[0]
    told = f"{first['code']} on {first['ranks']} [{first['certainty']}]: {first['cause']}"
    if first["ranks"] != [culprit] or first["code"] != ENDS[what]:
        yield f"wrong culprit, it was rank {culprit} that did {what}: {told}"
    marks = [n for n, line in enumerate(JOB.read_text().splitlines(), 1) if f"# <-- {what}" in line]
    lines = {place["place"]["line"] for place in first["places"] if place.get("place")}
    if marks and not lines & set(marks) and what not in UNSEEN:
        yield f"line {marks} is not among {lines}: {told}"


def _is_well(scene: Scene) -> Iterator[str]:
    """Output, exit code and report of a job that was not harmed."""
    if sorted(set(scene.text("out").split("\n")) & set(TRAINED)) != TRAINED:
        yield f"the job's output was {scene.text('out')!r}"
    if scene.status != 0:
        yield f"exit code {scene.status}: {scene.text('err')[-300:]}"
    report = scene.report()
    if report is None:
        yield f"no report: {scene.text('err')[-300:]}"
    else:
        yield from _nothing_alleged(report)


def _nothing_alleged(report: dict[str, Any]) -> Iterator[str]:
    for finding in report["findings"]:
        if finding["severity"] != "info":
            yield f"false alarm: {finding['code']} on {finding['ranks']}: {finding['cause']}"


def _nothing_proven(scene: Scene) -> Iterator[str]:
    if (report := scene.report()) is None:
        yield f"no report: {scene.text('err')[-300:]}"
        return
    for finding in report["findings"]:
        if finding["certainty"] == "proven" and finding["severity"] == "error":
            yield f"false proof: {finding['code']} on {finding['ranks']}: {finding['cause']}"


def _nothing(scene: Scene, rank: int, when: int) -> None:
    """No disturbance."""


def _pauses(scene: Scene, rank: int, when: int) -> None:
    if scene.wait_for(lambda: scene.step(rank) >= when):
        pid = scene.rank(rank)
        scene.send(signal.SIGSTOP, pid)
        time.sleep(scene.random.uniform(0.2, 2.5))
        scene.send(signal.SIGCONT, pid)


def _holds_the_gil(scene: Scene, rank: int, when: int) -> None:
    """By itself."""


def _well(disturb: Callable[[Scene, int, int], None], random: Any) -> Case:
    rank, when = _draw(random)
    what = "gil" if disturb is _holds_the_gil else "well"
    return Case(
        f"run: well, {disturb.__name__.strip('_').replace('_', ' ')}",
        _doctor(what, rank, when),
        lambda scene: disturb(scene, rank, when),
        _is_well,
    )


def _interrupt(scene: Scene) -> None:
    """Ctrl-C: everything in the foreground gets it, once.

    No terminal sends it here, so the doctor hands it on to the launcher: a second one, which comes
    while a Python process ends of the first, would have it end with 1.
    """
    below = [each.pid for each in scene.below(scene.doctor)[1:]]
    scene.send(signal.SIGINT, scene.doctor, *below)


def _stalls(what: str, random: Any) -> Case:
    """A rank that does not come, for longer than a wait is worth a word; then Ctrl-C."""
    rank, when = _draw(random)
    stopped = what == "stopped"

    def disturb(scene: Scene) -> None:
        others = [each for each in range(RANKS) if each != rank]
        if scene.wait_for(lambda: min(map(scene.step, range(RANKS))) >= when - 1):
            if stopped:
                scene.send(signal.SIGSTOP, scene.rank(rank))
            scene.wait_for(lambda: any(scene.step(each) > scene.step(rank) for each in others), 0.5)
            time.sleep(scene.random.uniform(7, 10))
            _interrupt(scene)
            time.sleep(0.5)
            scene.send(signal.SIGKILL, scene.rank(rank))

    def judge(scene: Scene) -> Iterator[str]:
        yield from _nothing_proven(scene)
        told = [(f["title"], f["ranks"]) for f in (scene.report() or {"findings": []})["findings"]]
        if told != [("stall", [rank])]:
            yield f"rank {rank} kept the others waiting, and told is {told}"
        elif scene.status not in (128 + signal.SIGINT, int(scene.text("status") or -1)):
            yield f"exit code {scene.status}, the launcher's {scene.text('status')}"
        elif stopped and "is stopped" not in scene.text("report.json"):
            yield "it is not said that the rank is stopped"

    do = "well" if stopped else what
    return Case(f"run: {what}, Ctrl-C", _doctor(do, rank, when), disturb, judge)


def _signalled(random: Any) -> Case:
    number = random.choice([signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])

    def disturb(scene: Scene) -> None:
        time.sleep(scene.random.uniform(0.05, 1.5))
        if scene.has_ended():
            return
        if number in (signal.SIGINT, signal.SIGQUIT):
            _interrupt(scene) if number == signal.SIGINT else scene.send(number, scene.doctor)
        else:
            scene.send(number, scene.doctor)
        time.sleep(0.3)
        within(20, lambda: _is_over(scene))

    def judge(scene: Scene) -> Iterator[str]:
        allowed = {0, 1, 128 + number, 128 + signal.SIGTERM, signal.SIGTERM, signal.SIGINT}
        if scene.status not in {*allowed, int(scene.text("status") or 0)}:
            yield f"exit code {scene.status} after {number.name}: {scene.text('err')[-300:]}"
        if "Traceback" in scene.text("err") and "ddpdoctor/run" in scene.text("err"):
            yield f"a traceback of ours: {scene.text('err')[-500:]}"

    return Case(f"run: {number.name} to the doctor", _doctor("well", 0, 1), disturb, judge)


def _is_over(scene: Scene) -> bool:
    """Whether it is, once the ranks are told to end.

    Whom the signal missed would go on, as without a doctor: Python swallows one that comes as it
    forks, and who is started after it never gets it, with a launcher or without.
    """
    watched = scene.below(scene.doctor)
    started = {each.pid for one in watched[:1] for each in scene.below(one.pid)}
    orphans = {each.pid for each in scene.living()} - {
        scene.doctor,
        *(each.pid for each in watched),
    }
    scene.send(signal.SIGTERM, *started, *orphans)
    return scene.has_ended() and not orphans


def _doctor_killed(random: Any) -> Case:
    def disturb(scene: Scene) -> None:
        time.sleep(scene.random.uniform(0.1, 0.8))
        scene.send(signal.SIGKILL, scene.doctor)
        scene.wait_for(scene.has_ended)
        deadline = time.monotonic() + 20
        while scene.rank(0) and not scene.text("status") and time.monotonic() < deadline:
            time.sleep(0.02)

    def judge(scene: Scene) -> Iterator[str]:
        if scene.rank(0) and scene.text("status") != "0":
            yield f"the job ended with {scene.text('status')!r}: {scene.text('err')[-300:]}"

    return Case("run: doctor killed", _doctor("well", 0, 1), disturb, judge)


def _launcher_killed(random: Any) -> Case:
    rank, when = _draw(random)

    def disturb(scene: Scene) -> None:
        if scene.wait_for(lambda: scene.step(rank) >= when):
            scene.send(signal.SIGKILL, *(each.pid for each in scene.below(scene.doctor)[:1]))
            time.sleep(1)

    def judge(scene: Scene) -> Iterator[str]:
        if scene.status not in (0, 137):
            yield f"exit code {scene.status}, of a launcher that was killed"
        yield from _nothing_proven(scene)

    return Case("run: launcher killed", _doctor("well", rank, when), disturb, judge)


def _folder_deleted(random: Any) -> Case:
    rank, when = _draw(random)

    def disturb(scene: Scene) -> None:
        if scene.wait_for(lambda: scene.step(rank) >= when):
            shutil.rmtree(scene.home / "reports", ignore_errors=True)

    return Case("run: run folder deleted", _doctor("well", rank, when), disturb, _is_well)


def _folder_read_only(random: Any) -> Case:
    rank, when = _draw(random)

    def disturb(scene: Scene) -> None:
        if scene.wait_for(lambda: scene.step(rank) >= when):
            scene.make_read_only(scene.home / "reports")

    def doctor(scene: Scene) -> int:
        obey_permissions()
        return _doctor("well", rank, when)(scene)

    return Case("run: run folder read-only", doctor, disturb, _is_well)


def _disk_full(random: Any) -> Case:
    rank, when = _draw(random)
    size = random.choice([1, 2, 3, 4, 16]) << 12
    return Case(
        "run: disk full",
        _doctor("well", rank, when),
        _idle,
        _is_well,
        prepare=lambda scene: scene.mount(scene.home / "reports", size),
        needs_mounts=True,
    )


def _few_descriptors(random: Any) -> Case:
    few = random.randrange(8, 40)

    def doctor(scene: Scene) -> int:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allow_descriptors(few, hard)
        return _doctor("well", 0, 1)(scene)

    def disturb(scene: Scene) -> None:
        # Without descriptors gloo may wait for ever, with a doctor or without: then people lose
        # their patience with it.
        if not scene.wait_for(scene.has_ended, 15):
            below = [each.pid for each in scene.below(scene.doctor)]
            _interrupt(scene)
            scene.wait_for(scene.has_ended, 10)
            scene.send(signal.SIGKILL, *below)

    def judge(scene: Scene) -> Iterator[str]:
        # A job that fails of it has failed: that is told, and nothing that only follows from it.
        allowed = () if scene.text("status") == "0" else ("DDP400", "DDP600", "DDP711")
        for finding in (scene.report() or {"findings": []})["findings"]:
            if finding["code"] not in allowed:
                yield from _nothing_alleged({"findings": [finding]})
        by_patience = {128 + signal.SIGINT, 128 + signal.SIGKILL}
        if scene.status is None or (scene.status > 128 and scene.status not in by_patience):
            yield f"exit code {scene.status}: {scene.text('err')[-400:]}"
        if re.search(r'File "[^"]*ddpdoctor/run/', scene.text("err")):
            yield f"a traceback of ours: {scene.text('err')[-400:]}"

    return Case("run: few descriptors", doctor, disturb, judge)


def _closed_streams(random: Any) -> Case:
    closed = [each for each in range(3) if random.random() < 0.6] or [2]

    def doctor(scene: Scene) -> int:
        import sys

        for each in closed:
            os.close(each)
            setattr(sys, ("stdin", "stdout", "stderr")[each], None)
        return _doctor("well", 0, 1)(scene)

    def judge(scene: Scene) -> Iterator[str]:
        # The job's own writes to a closed stream fail, with the doctor or without.
        if 1 in closed:
            if scene.report() is None:
                yield f"no report: {scene.text('err')[-300:]}"
        else:
            yield from _is_well(scene)
            if "ddpdoctor" in scene.text("out"):
                yield f"ours in the job's stdout: {scene.text('out')!r}"

    return Case("run: closed streams", doctor, _idle, judge)


def _two_doctors(random: Any) -> Case:
    second: list[int] = []

    def other(scene: Scene) -> int:
        os.makedirs("other", exist_ok=True)  # noqa: PTH103
        job = [LAUNCHER, str(RANKS), "well", "0", "0"]
        os.chdir("other")
        return command_line(
            *("run", "--run-dir", "../reports", "--format=json", "-o", "report.json", "--", *job)
        )

    def disturb(scene: Scene) -> None:
        second.append(scene.start(lambda: other(scene)))
        _, status = os.waitpid(second[0], 0)
        if status:
            (scene.home / "second").write_text(f"{os.waitstatus_to_exitcode(status)}")

    def judge(scene: Scene) -> Iterator[str]:
        yield from _is_well(scene)
        if (scene.home / "second").exists():
            yield f"the second ended with {scene.text('second')}"

    return Case("run: two doctors", _doctor("well", 0, 1, "--run-dir", "reports"), disturb, judge)


def _impatient(random: Any) -> Case:
    """Ctrl-C twice while the verdict on a job that was stuck is made."""
    rank, when = _draw(random)

    def disturb(scene: Scene) -> None:
        if scene.wait_for(lambda: scene.step(rank) >= when - 1):
            time.sleep(scene.random.uniform(0.3, 1.0))
            for _ in range(2):
                _interrupt(scene)
                time.sleep(scene.random.uniform(0, 0.3))

    def judge(scene: Scene) -> Iterator[str]:
        yield from _nothing_proven(scene)
        if re.search(r"Traceback.*ddpdoctor/run/", scene.text("err"), re.DOTALL):
            yield f"a traceback of ours: {scene.text('err')[-500:]}"

    return Case("run: Ctrl-C twice", _doctor("spin", rank, when), disturb, judge)


def _busy(what: str, random: Any) -> Case:
    rank, when = _draw(random)
    judge = _is_well if what == "well" else partial(_names, what, rank)
    case = Case(f"run: {what} on busy cores", _doctor(what, rank, when), _idle, judge)
    return on_busy_cores(case)


def _memory_taken(random: Any) -> Case:
    rank, when = _draw(random)
    what = random.choice(("barrier", "raise", "well"))
    judge = _is_well if what == "well" else partial(_names, what, rank)
    return with_memory_taken(Case("run: memory taken", _doctor(what, rank, when), _idle, judge))

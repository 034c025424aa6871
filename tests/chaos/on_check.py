"""`ddpdoctor check`, the pytest plugin and a bare launch, disturbed."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ddpdoctor.launch import ForkServer, Job, LaunchError
from tests.chaos import warm
from tests.chaos.scene import (
    Case,
    Scene,
    allow_descriptors,
    allow_processes,
    command_line,
    on_busy_cores,
    swap_out,
    with_memory_taken,
)

_PROOFS = ("DDP101", "DDP301", "DDP401", "DDP501")
_TESTS = """
import time, pytest, torch, torch.distributed as dist
@pytest.mark.distributed(nproc=3)
def test_well():
    for _ in range(5):
        dist.all_reduce(torch.ones(1))
        time.sleep(0.03)
@pytest.mark.distributed(nproc=2)
def test_fails():
    assert dist.get_rank() == 0
"""
_ENDING = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_TARGETS = ("server", "keeper", "rank")


def cases() -> Iterator[Callable[[Any], Case]]:
    """One maker of each kind, which draws the details."""
    for subject in (Check, Plugin, Launch):
        for number in _ENDING:
            yield partial(_ended, subject, number)
        for stopped in _TARGETS:
            yield partial(_ended_while_stopped, subject, stopped)
        yield partial(_ended_while_swapped_out, subject)
        for target in _TARGETS:
            yield partial(_part_killed, subject, target)
            yield partial(_part_paused, subject, target)
        yield partial(_plain, subject)
        yield partial(_few_descriptors, subject)
        yield partial(_few_processes, subject)
        yield partial(_temporary_full, subject)
        yield partial(_temporary_read_only, subject)
    for subject in (Check, Plugin):
        for hardship in (on_busy_cores, with_memory_taken):
            yield partial(_hard_times, subject, hardship)
    yield from (_closed_streams, _two_checks, _impatient, _little_memory, _starter_killed)


class Check:
    """`ddpdoctor check` on a proof or two."""

    name = "check"
    good = (0,)
    lost = (1, 3)
    """Where a rank, or its keeper, was killed: what it held is not so, or nobody can know."""

    def __init__(self, random: Any) -> None:
        self.select = ",".join(random.sample(_PROOFS, random.randrange(1, 3)))

    def doctor(self, scene: Scene) -> int:
        """The exit code."""
        return command_line(
            *("check", "--nproc", "3", "--select", self.select, "--suite", "quick"),
            *("--format", "json", "-o", "report.json"),
        )

    def judge(self, scene: Scene) -> Iterator[str]:
        """What is wrong with its report."""
        if (report := scene.report()) is None:
            yield f"no report: {scene.text('err')[-300:]}"
            return
        for verdict in report["data"]["verdicts"]:
            if verdict["status"] in ("misdiagnosed", "not checked") or (
                verdict["kind"] == "fix" and verdict["status"] == "fails"
            ):
                told = f"{verdict['code']} {verdict['variant']} {verdict['status']}"
                yield f"false verdict: {told}: {verdict['evidence']}"

    def tells_of_loss(self, scene: Scene) -> Iterator[str]:
        """What is wrong with how it tells of a rank that was killed."""
        report, told = scene.report(), scene.text("err")
        verdicts = report["data"]["verdicts"] if report else []
        evidence = [each["evidence"] for each in verdicts]
        if not any("killed" in each or "SIGKILL" in each for each in (*evidence, told)):
            yield f"exit code {scene.status}, and no word of the kill: {told} {evidence}"


class Plugin:
    """pytest over a test that passes and one that fails."""

    name = "pytest"
    good = (1,)
    lost = ()

    def __init__(self, random: Any) -> None:
        pass

    def doctor(self, scene: Scene) -> int:
        """The exit code."""
        import pytest

        warm.use()
        Path("test_it.py").write_text(_TESTS)
        options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest")
        return int(pytest.main([*options, "--rootdir=.", "-c/dev/null", "test_it.py"]))

    def judge(self, scene: Scene) -> Iterator[str]:
        """What is wrong with its report."""
        out = scene.text("out")
        if "1 failed, 1 passed" not in out or "rank 1" not in out:
            yield f"the report is {out[-600:]} {scene.text('err')[-300:]}"


class Launch:
    """Ranks without a watch, launched by the room's own interface."""

    name = "launch"
    good = (0,)
    lost = (8, 9)
    """A rank has failed; the others wait for it, as without a watch nobody tells them."""

    def __init__(self, random: Any) -> None:
        self.nproc = random.choice([2, 3, 20])

    def doctor(self, scene: Scene) -> int:
        """The exit code."""
        warm.use()
        with ForkServer() as server:
            run_dir = server.fresh_run_dir()
            target = f"{Path(__file__).with_name('bodies.py')}:meet"
            try:
                with server.launch(Job(target, self.nproc, run_dir)) as world:
                    is_over = world.wait(20)
                    statuses = [fate.exit_code for fate in world.poll()]
                    killed = [fate.rank for fate in world.poll() if fate.signal == signal.SIGKILL]
            except LaunchError as error:
                Path("killed").write_text(str(error))
                return 8
            Path("statuses").write_text(json.dumps(statuses))
            Path("killed").write_text(json.dumps(killed))
            if not is_over:
                return 9
            return 0 if statuses == [0] * self.nproc else 8

    def judge(self, scene: Scene) -> Iterator[str]:
        """What is wrong with its report."""
        if scene.text("statuses") != json.dumps([0] * self.nproc):
            yield f"the ranks ended with {scene.text('statuses')} {scene.text('err')[-300:]}"

    def tells_of_loss(self, scene: Scene) -> Iterator[str]:
        """What is wrong with how it tells of a rank that was killed."""
        if scene.text("killed") in ("", "[]"):
            yield f"exit code {scene.status}, and no rank is known as killed"


Subject = Any


def _ours_are_gone_and_nothing_is_told_wrongly(codes: set[int], scene: Scene) -> Iterator[str]:
    if scene.status not in codes:
        yield f"exit code {scene.status}: {scene.text('err')[-300:]}"
    if "Traceback" in scene.text("err"):
        yield f"a traceback: {scene.text('err')[-700:]}"


def _wait_a_while(scene: Scene) -> None:
    """From before there is a server to after the first ranks have ended."""
    scene.wait_for(lambda: False, scene.random.choice([0.1, 0.4, 1.5]) * scene.random.random())


def _ended(kind: Subject, number: signal.Signals, random: Any) -> Case:
    subject = kind(random)
    codes = {128 + number, *subject.good}
    if kind is Plugin and number == signal.SIGINT:
        codes.add(2)  # pytest's own for an interruption

    def disturb(scene: Scene) -> None:
        _wait_a_while(scene)
        if not scene.has_ended():
            scene.send(number, scene.doctor)

    def judge(scene: Scene) -> Iterator[str]:
        if kind is not Launch or number != signal.SIGINT:
            yield from _ours_are_gone_and_nothing_is_told_wrongly(codes, scene)

    return Case(f"{subject.name}: {number.name}", subject.doctor, disturb, judge)


def _part(scene: Scene, which: str) -> int:
    """A process of ours: the server, or a keeper or a rank of it."""
    depth = _TARGETS.index(which)
    found = scene.below(scene.doctor)
    generation = [scene.doctor]
    for _ in range(depth + 1):
        generation = [each.pid for each in found if each.ppid() in generation]
    return scene.random.choice(generation) if generation else 0


def _await_part(scene: Scene, which: str) -> int:
    pids: list[int] = []

    def is_there() -> bool:
        import psutil

        try:
            pids[:] = [pid] if (pid := _part(scene, which)) else []
            # One that was not given a core yet can have asked for no word of its parent's death.
            return bool(pids) and (which != "server" or os.getsid(pid) == pid)
        except (psutil.Error, ProcessLookupError):
            return False

    scene.wait_for(is_there)
    return pids[0] if pids else 0


def _ended_while_stopped(kind: Subject, which: str, random: Any) -> Case:
    subject = kind(random)
    number = random.choice(_ENDING[:3])

    def disturb(scene: Scene) -> None:
        part = _await_part(scene, which)
        time.sleep(scene.random.uniform(0, 0.2))
        scene.send(signal.SIGSTOP, part)
        time.sleep(scene.random.uniform(0, 0.3))
        if not scene.has_ended():
            scene.send(number, scene.doctor)

    def judge(scene: Scene) -> Iterator[str]:
        allowed = {128 + number, *subject.good, 1}
        yield from _ours_are_gone_and_nothing_is_told_wrongly(allowed, scene)

    name = f"{subject.name}: {number.name}, {which} stopped"
    return Case(name, subject.doctor, disturb, judge)


def _ended_while_swapped_out(kind: Subject, random: Any) -> Case:
    """Out as far as it goes: where there is no swap, what comes from files."""
    subject = kind(random)
    number = random.choice(_ENDING)

    def disturb(scene: Scene) -> None:
        part = _await_part(scene, "server")
        time.sleep(scene.random.uniform(0, 0.2))
        swap_out(part)
        if not scene.has_ended():
            scene.send(number, scene.doctor)

    def judge(scene: Scene) -> Iterator[str]:
        if kind is not Launch or number != signal.SIGINT:
            allowed = {128 + number, *subject.good, 2}
            yield from _ours_are_gone_and_nothing_is_told_wrongly(allowed, scene)

    name = f"{subject.name}: ended, server swapped out"
    return Case(name, subject.doctor, disturb, judge)


def _part_killed(kind: Subject, which: str, random: Any) -> Case:
    subject = kind(random)

    def disturb(scene: Scene) -> None:
        part = _await_part(scene, which)
        time.sleep(scene.random.uniform(0, 0.2))
        scene.send(signal.SIGKILL, part)

    def judge(scene: Scene) -> Iterator[str]:
        if which == "server":  # another takes its place
            yield from _ours_are_gone_and_nothing_is_told_wrongly(set(subject.good), scene)
            yield from subject.judge(scene)
        else:
            codes = {*subject.good, *subject.lost}
            yield from _ours_are_gone_and_nothing_is_told_wrongly(codes, scene)
            if scene.status in subject.lost:
                yield from subject.tells_of_loss(scene)

    return Case(f"{subject.name}: {which} killed", subject.doctor, disturb, judge)


def _part_paused(kind: Subject, which: str, random: Any) -> Case:
    subject = kind(random)

    def disturb(scene: Scene) -> None:
        part = _await_part(scene, which)
        time.sleep(scene.random.uniform(0, 0.1))
        scene.send(signal.SIGSTOP, part)
        time.sleep(scene.random.uniform(0.1, 1.5))
        scene.send(signal.SIGCONT, part)

    return _must_be_well(subject, f"{which} stopped and continued", disturb)


def _must_be_well(
    subject: Subject,
    name: str,
    disturb: Callable[[Scene], None] = lambda scene: None,
    doctor: Callable[[Scene], int] | None = None,
) -> Case:
    def judge(scene: Scene) -> Iterator[str]:
        yield from _ours_are_gone_and_nothing_is_told_wrongly(set(subject.good), scene)
        yield from subject.judge(scene)

    return Case(f"{subject.name}: {name}", doctor or subject.doctor, disturb, judge)


def _plain(kind: Subject, random: Any) -> Case:
    return _must_be_well(kind(random), "undisturbed")


def _hard_times(kind: Subject, hardship: Callable[[Case], Case], random: Any) -> Case:
    words = hardship.__name__.removeprefix("with_").replace("_", " ")
    return hardship(_must_be_well(kind(random), words))


def _few_descriptors(kind: Subject, random: Any) -> Case:
    """It works, or is refused in one line."""
    subject = kind(random)
    few = random.randrange(10, 60)

    def doctor(scene: Scene) -> int:
        allow_descriptors(few, few)
        return int(subject.doctor(scene))

    return _well_or_refused(subject, f"few descriptors ({few // 20 * 20} and more)", doctor)


def _few_processes(kind: Subject, random: Any) -> Case:
    """The same, by the limit on a user's processes."""
    subject = kind(random)
    few = random.randrange(2, 120)

    def doctor(scene: Scene) -> int:
        if os.getuid() == 0:
            allow_processes(few, scene.home, scene.temporary)
        return int(subject.doctor(scene))

    return _well_or_refused(subject, f"few processes ({few // 60 * 60} and more)", doctor)


def _temporary_full(kind: Subject, random: Any) -> Case:
    subject = kind(random)
    size = random.choice([4096, 65536])
    return _well_or_refused(
        subject,
        "temporary folder full",
        subject.doctor,
        prepare=lambda scene: scene.mount(scene.temporary, size),
        needs_mounts=True,
    )


def _temporary_read_only(kind: Subject, random: Any) -> Case:
    from tests.chaos.scene import obey_permissions

    subject = kind(random)

    def doctor(scene: Scene) -> int:
        scene.make_read_only(scene.temporary)
        obey_permissions()
        return int(subject.doctor(scene))

    return _well_or_refused(subject, "temporary folder read-only", doctor)


def _well_or_refused(
    subject: Subject, name: str, doctor: Callable[[Scene], int], **more: Any
) -> Case:
    def judge(scene: Scene) -> Iterator[str]:
        told = scene.text("err") + scene.text("out")
        if scene.status in subject.good and not list(subject.judge(scene)):
            return
        if subject is not None and isinstance(subject, Launch):
            return  # an exception is its way to say so
        if isinstance(subject, Check):
            if scene.status == 3 and "not checked" in scene.text("report.json"):
                return
            if scene.status == 2 and told.count("\n") == 1 and "fault of ours" not in told:
                return
            yield from subject.judge(scene)
        elif scene.status in (1, 3, 4) and not re.search(r'File "[^"]*ddpdoctor/', told):
            return  # pytest itself may have none left
        yield f"exit code {scene.status}: {told[-500:]}"

    return Case(f"{subject.name}: {name}", doctor, lambda scene: None, judge, **more)


def _closed_streams(random: Any) -> Case:
    subject = Check(random)
    closed = [each for each in range(3) if random.random() < 0.6] or [1]

    def doctor(scene: Scene) -> int:
        for each in closed:
            os.close(each)
            setattr(sys, ("stdin", "stdout", "stderr")[each], None)
        return subject.doctor(scene)

    return _must_be_well(subject, "closed streams", doctor=doctor)


def _two_checks(random: Any) -> Case:
    subject = Check(random)

    def other(scene: Scene) -> int:
        Path("other").mkdir()
        os.chdir("other")
        return Check(random).doctor(scene)

    def disturb(scene: Scene) -> None:
        _, status = os.waitpid(scene.start(lambda: other(scene)), 0)
        (scene.home / "second").write_text(str(os.waitstatus_to_exitcode(status)))

    case = _must_be_well(subject, "two at once", disturb)

    def judge(scene: Scene) -> Iterator[str]:
        if not _lacked_room(scene.status, scene.text("report.json")):
            yield from case.judge(scene)
        second, told = scene.text("second"), scene.text("other/report.json")
        if second != "0" and not (second.isdigit() and _lacked_room(int(second), told)):
            found = json.loads(told)["findings"] if told else []
            problems = [each["cause"] for each in found]
            yield f"the second ended with {second}: {problems} {scene.text('err')[-300:]}"

    return Case(case.name, case.doctor, case.disturb, judge)


def _lacked_room(status: int | None, report: str) -> bool:
    """Whether it says that, beside the other, there was no room for some, and no more than that."""
    try:
        verdicts = json.loads(report)["data"]["verdicts"]
    except (ValueError, KeyError):
        return False
    left_out = [each["evidence"] for each in verdicts if each["status"] == "not checked"]
    wrong = any(each["status"] == "misdiagnosed" for each in verdicts)
    room = all("are left" in each or "no room" in each for each in left_out)
    return status == 3 and bool(left_out) and room and not wrong


def _impatient(random: Any) -> Case:
    subject = Check(random)

    def disturb(scene: Scene) -> None:
        _wait_a_while(scene)
        for _ in range(3):
            if not scene.has_ended():
                scene.send(signal.SIGINT, scene.doctor)
            time.sleep(scene.random.uniform(0, 0.2))

    judge = partial(_ours_are_gone_and_nothing_is_told_wrongly, {0, 130})
    return Case("check: Ctrl-C three times", subject.doctor, disturb, judge)


def _little_memory(random: Any) -> Case:
    """An address space that is too small is told in one line."""
    subject = Check(random)
    gib = random.choice([1, 2, 3])

    def doctor(scene: Scene) -> int:
        resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
        return subject.doctor(scene)

    return _well_or_refused(subject, "little address space", doctor)


def _starter_killed(random: Any) -> Case:
    """In little room, which it was told not to count, and whatever its server is doing."""
    nproc, polls = random.randrange(17, 120), random.random() < 0.8
    stage = random.choice(("any time", "ranks are born", "all are born"))
    hindrance = random.choice((None, signal.SIGSTOP, "swapped out"))
    hindered = random.choice(("server", "keeper"))

    def doctor(scene: Scene) -> int:
        warm.use()
        with ForkServer(force=True) as server:
            target = f"{Path(__file__).with_name('bodies.py')}:sleep"
            Path("folder").write_text(str(folder := server.fresh_run_dir()))
            with server.launch(Job(target, nproc, folder)) as world:
                while polls:
                    world.wait_for_news(0.05)
                time.sleep(60)
        return 0

    def born(scene: Scene) -> int:
        files = Path(scene.text("folder") or "nowhere").glob("rank-*.stdout")
        return sum(file.stat().st_size > 0 for file in files)

    def disturb(scene: Scene) -> None:
        if stage == "any time":
            _wait_a_while(scene)
        else:
            most = min(nproc, 100) if polls else 16  # 200 tasks are not enough for more
            least = most if stage == "all are born" else random.randrange(1, most)
            scene.wait_for(lambda: born(scene) >= least, 10)
        if hindrance is not None and (part := _part(scene, hindered)):
            swap_out(part) if hindrance == "swapped out" else scene.send(hindrance, part)
        scene.send(signal.SIGKILL, scene.doctor)

    def judge(scene: Scene) -> Iterator[str]:
        if scene.status not in (128 + signal.SIGKILL, 1):  # 1: no room was left for so many
            yield f"exit code {scene.status}: {scene.text('err')[-300:]}"

    return Case("launch: starter killed", doctor, disturb, judge, memory=1 << 30, tasks=200)

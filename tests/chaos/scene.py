"""One trial: a supervisor with limits around a doctor, and what is left when the doctor is gone."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import psutil

from ddpdoctor.launch.processes import Children, adopt_orphans
from tests.chaos import warm
from tests.control_group import ControlGroup
from tests.patience import within

DEADLINE = 60.0
"""Seconds after which a trial hangs, of a machine that does nothing else."""
PATIENCE = 5.0
"""Seconds, of such a machine, after which whatever still lives has been left behind."""
_ADDRESS_SPACE = 16 << 30
_NEW_MOUNTS = 0x00020000
_KEEP_CAPABILITIES = 8
_PROCESS_MADVISE, _PAGE_OUT = 440, 21
_PRIVATE = 1 << 18 | 1 << 14
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Scene:
    """Where a trial takes place, and its doctor."""

    folder: Path
    random: random.Random
    mounts: bool
    """Whether file systems can be mounted here, for this trial alone."""
    busy: bool = False
    doctor: int = 0
    status: int | None = None
    """Exit code of the doctor, as a shell tells it."""
    burners: list[int] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """The folder that the job and the doctor run in."""
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        """TMPDIR."""
        return self.folder / "tmp"

    def start(self, main: Callable[[], int]) -> int:
        """Be the parent of a doctor, which runs `main`."""
        # Until it is the doctor, Ctrl-C ends it, as it does an interpreter that has just begun.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pid = os.fork()
        if pid > 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        else:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                signal.set_wakeup_fd(-1)  # the supervisor's, as its handler is
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _redirect(self.home, "out", "err")
                warm.end(main)
            finally:
                os._exit(1)  # a signal may come before or after what `end` guards
        return pid

    def wait_for(self, condition: Callable[[], object], seconds: float = 45.0) -> bool:
        """Whether it came true while the doctor lived."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self.has_ended():
                return False
            time.sleep(0.01)
        return True

    def has_ended(self) -> bool:
        """Whether the doctor has."""
        if self.status is None:
            pid, status = os.waitpid(self.doctor, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
        return self.status is not None

    def rank(self, number: int) -> int:
        """The process of a rank of job.py; 0 if there is none yet."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.home / f"pid-{number}").read_text())
        return 0

    def step(self, number: int) -> int:
        """The last step that a rank of job.py has made."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.home / f"step-{number}").read_text())
        return -1

    def below(self, pid: int) -> list[psutil.Process]:
        """Its descendants, those next to it first."""
        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid).children(recursive=True)
        return []

    def living(self) -> list[psutil.Process]:
        """All that the trial has started and that has not ended, its burners aside."""
        found = []
        for process in self.below(os.getpid()):
            with contextlib.suppress(psutil.Error):
                if process.pid not in self.burners and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def send(self, number: int, *pids: int) -> None:
        """A signal, to those that are still there."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, number)

    def text(self, name: str) -> str:
        """What is in a file of the home folder."""
        try:
            return (self.home / name).read_text(errors="replace")
        except OSError:
            return ""

    def report(self) -> dict[str, Any] | None:
        """The doctor's, if it can be parsed."""
        try:
            return dict(json.loads(self.text("report.json")))
        except ValueError:
            return None

    def mount(self, where: Path, size: int) -> None:
        """A file system of so many bytes, in this trial alone."""
        where.mkdir(exist_ok=True)
        _mount("tmpfs", where, "tmpfs", 0, f"size={size}")

    def make_read_only(self, where: Path) -> None:
        """A folder and all below it, for those who `obey_permissions`."""
        for folder in (*(each for each in where.rglob("*") if each.is_dir()), where):
            folder.chmod(0o555)


def _mount(what: str, where: Path, kind: str, flags: int, data: str) -> None:
    names = (what.encode(), str(where).encode(), kind.encode())
    if _libc.mount(*names, ctypes.c_ulong(flags), data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount on {where}")


def obey_permissions() -> None:
    """Have read-only folders be so for root, too, in this process and its children."""
    every = (1 << 32) - 1
    header = struct.pack("Ii", 0x20080522, 0)
    some = every & ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    kept = bytearray(24)
    _libc.capget(header, (ctypes.c_char * 24).from_buffer(kept))
    old = struct.unpack("6I", kept)
    _libc.capset(header, struct.pack("6I", old[0] & some, old[1] & some, *old[2:]))


def allow_descriptors(few: int, most: int) -> None:
    """To this process, which has then none but the three of a program that was just started."""
    os.closerange(3, 1 << 10)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


def allow_processes(number: int, *owned: Path) -> None:
    """To this process and its children, which are a user's of their own from now on.

    The limit is on a user's processes, and root's are not limited. It keeps the right to read what
    root may read, and no other; the folders that are given are its own.
    """
    user = 60000 + os.getpid() % 5000
    for folder in owned:
        for each in (folder, *folder.rglob("*")):
            os.chown(each, user, user)
    _libc.prctl(_KEEP_CAPABILITIES, 1)
    resource.setrlimit(resource.RLIMIT_NPROC, (number, number))
    os.setresuid(user, user, user)
    only = 1 << 2  # CAP_DAC_READ_SEARCH
    header = struct.pack("Ii", 0x20080522, 0)
    _libc.capset(header, struct.pack("6I", only, only, 0, 0, 0, 0))


def swap_out(pid: int) -> None:
    """Have the kernel take away every page that a process has."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            stretch = struct.pack("QQ", begin, end - begin)
            _libc.syscall(_PROCESS_MADVISE, handle, stretch, ctypes.c_size_t(1), _PAGE_OUT, 0)
        os.close(handle)


def _redirect(home: Path, *names: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for descriptor, name in enumerate(names, 1):
        file = os.open(home / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, descriptor)


@dataclass(frozen=True)
class Case:
    """What is tried, and what must come of it."""

    name: str
    doctor: Callable[[Scene], int]
    """What the doctor runs; its exit code."""
    disturb: Callable[[Scene], None]
    judge: Callable[[Scene], Iterator[str]]
    """What is wrong, in words."""
    prepare: Callable[[Scene], None] = lambda scene: None
    may_leave: Callable[[Scene], bool] = lambda scene: False
    """Whether ranks may go on, as they would without the doctor."""
    needs_mounts: bool = False
    deadline: float = DEADLINE
    memory: int = 2 << 30
    """Bytes that all of it may take together."""
    tasks: int = 600
    """Processes and threads that it may have; 20 ranks are reckoned to take 440."""


def on_busy_cores(case: Case) -> Case:
    """The same beside four busy loops for each core: no other verdict, only later."""

    def prepare(scene: Scene) -> None:
        case.prepare(scene)
        for _ in range(4 * len(os.sched_getaffinity(0))):
            if (pid := os.fork()) == 0:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline:
                    pass
                os._exit(0)
            scene.burners.append(pid)

    return replace(case, prepare=prepare, deadline=5 * DEADLINE)


def with_memory_taken(case: Case) -> Case:
    """The same where nine tenths of what there is are taken: no other verdict, only later."""
    all_of_it = 7 << 30

    def prepare(scene: Scene) -> None:
        case.prepare(scene)
        if psutil.virtual_memory().available < 2 * all_of_it:
            return  # where no control group can be made, it would be taken from others
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            ballast = mmap.mmap(-1, all_of_it // 10 * 9)
            for page in range(0, len(ballast), mmap.PAGESIZE):
                ballast[page] = 1
            os.write(writing, b"!")
            time.sleep(600)
            os._exit(0)
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        scene.burners.append(pid)

    return replace(case, prepare=prepare, deadline=5 * DEADLINE, memory=all_of_it)


def perform(case: Case, seed: int, group: ControlGroup | None) -> tuple[list[str], float]:
    """Try it in processes of its own; what was wrong, and the seconds that it took."""
    began = time.monotonic()
    reading, writing = os.pipe()
    if (supervisor := os.fork()) == 0:
        try:
            if group is not None:
                group.join()
            else:
                resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
            problems = _supervise(case, seed)
        except BaseException:
            problems = [f"the trial itself failed: {traceback.format_exc()}"]
        os.write(writing, json.dumps(problems).encode()[:60000])
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as said:  # noqa: PTH123
        text = said.read()
    os.waitpid(supervisor, 0)
    problems = json.loads(text) if text else ["the supervisor was killed"]
    return problems, time.monotonic() - began


def _supervise(case: Case, seed: int) -> list[str]:
    os.setsid()
    adopt_orphans()
    children = Children()
    mounts = _libc.unshare(_NEW_MOUNTS) == 0
    if mounts:
        _mount("none", Path("/"), "none", _PRIVATE, "")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    scene = Scene(folder, random.Random(seed), mounts)
    try:
        return list(_tried(case, scene, children))
    finally:
        children.kill_all()
        os.chdir("/")
        _unmount(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _unmount(folder: Path) -> None:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if (where := line.split()[1]).startswith(str(folder)):
            _libc.umount2(where.encode(), 2)


def _tried(case: Case, scene: Scene, children: Children) -> Iterator[str]:
    scene.home.mkdir()
    scene.temporary.mkdir()
    if scene.mounts:
        scene.mount(Path("/dev/shm"), 1 << 24)
    os.chdir(scene.home)
    os.environ.update(TMPDIR=str(scene.temporary), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    tempfile.tempdir = None
    case.prepare(scene)
    scene.doctor = scene.start(lambda: case.doctor(scene))
    case.disturb(scene)
    if not within(case.deadline, scene.has_ended):
        yield f"the doctor still ran after {case.deadline:.0f} s"
        return
    yield from _left(case, scene, children)
    yield from case.judge(scene)


def _left(case: Case, scene: Scene, children: Children) -> Iterator[str]:
    within(PATIENCE, lambda: not _living(children, scene))
    left = _living(children, scene)
    if left and not case.may_leave(scene):
        yield f"left behind: {', '.join(left)}"
    for folder in (scene.temporary, Path("/dev/shm") if scene.mounts else scene.temporary):
        ours = [entry.name for entry in folder.iterdir() if not entry.name.startswith("pytest-")]
        if ours and not (left and case.may_leave(scene)):
            yield f"left in {folder.name}: {', '.join(ours)}"


def _living(children: Children, scene: Scene) -> list[str]:
    list(children.reap())
    found = []
    for process in scene.living():
        with contextlib.suppress(psutil.Error):
            found.append(f"{process.pid} {process.status()}, child of {process.ppid()}")
    return found


def command_line(*arguments: str) -> NoReturn:
    """What the command `ddpdoctor` does, in this process."""
    from ddpdoctor.__main__ import main

    sys.argv[:] = ["ddpdoctor", *arguments]
    warm.use()
    main()

"""How a process of the user's own job comes under watch: after torch's import, before its use."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.importing import After

make_folder = os.mkdir
"""As it was before files were watched: ours are not the job's."""
_UNMET = ("EADDRINUSE", "while trying to connect to")
"""What a store says that cannot be hosted, or not be reached."""


def await_torch(run_dir: Path) -> None:
    """Have this process listen as soon as it has imported torch, if it ever does."""
    _end_last(run_dir)

    def imported(_: ModuleType) -> None:
        _mark_importing(run_dir, begun=False)
        listen(run_dir)

    sys.meta_path.insert(0, After("torch", imported, lambda: _mark_importing(run_dir, begun=True)))


@harmless
def _mark_importing(run_dir: Path, *, begun: bool) -> None:
    from ddpdoctor.evidence import IMPORTING

    mark = f"{run_dir}/{IMPORTING}{os.getpid()}"
    if begun:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    else:
        os.unlink(mark)  # noqa: PTH108 - pathlib's may be watched by now


@functools.cache
def _end_last(run_dir: Path) -> None:
    """Watch until all that others have registered with atexit is done: what they wait for is seen.

    Called as early as can be, since what is registered first is done last.
    """
    atexit.register(_end, run_dir)


def _end(run_dir: Path) -> None:
    if (heartbeat := sys.modules.get("ddpdoctor.watch.heartbeat")) is not None:
        heartbeat.end()
    elif "torch" not in sys.modules:
        _tell_early_end(run_dir)


@harmless
def _tell_early_end(run_dir: Path) -> None:
    """Write down what has ended this process before it came to import torch, if it may be a rank.

    One that no launcher calls a rank is no rank where others are: it writes beside these.
    """
    unread = _not_begun()
    if (error := unread or _uncaught()) is None:
        return
    from ddpdoctor.evidence import ALONE, DEATHS, LOG_NAME, attempt_name
    from ddpdoctor.watch import exceptions, launching, reaping
    from ddpdoctor.watch.log import Log

    rank, world_size = 0, 1
    if _is_a_launchers():
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        folder = world_folder(run_dir)
    elif "RANK" in os.environ:
        return
    else:
        folder = run_dir / ALONE / attempt_name("0", str(os.getpid()))
        folder.mkdir(parents=True, exist_ok=True)
    reaping.note(folder.parent / DEATHS, os.getpid(), 2 if unread else 1)
    log = Log()
    about = launching.process()
    log.open(folder / LOG_NAME.format(rank=rank), **about, torch="", world_size=world_size)
    exceptions.tell_end(log, error)


def _not_begun() -> OSError | None:
    """What keeps Python from opening its script: it only prints that, and raises nothing."""
    script = sys.argv[0]
    if not script or script.startswith("-") or hasattr(sys.modules["__main__"], "__file__"):
        return None
    try:
        with Path(script).open("rb"):
            return None
    except OSError as error:
        return error.with_traceback(None)


def _uncaught() -> BaseException | None:
    """The exception that has come through the whole program.

    Who tells of errors, as pytest does, leaves the last of them where Python leaves that.
    """
    error = _last_error()
    trace = error.__traceback__ if error is not None else None
    return error if trace is None or trace.tb_frame.f_code.co_name in _OUTERMOST else None


_OUTERMOST = ("<module>", "_run_module_as_main")


def _last_error() -> BaseException | None:
    """The last exception that was told; None if none was."""
    error: BaseException | None = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error


@harmless
def listen(run_dir: Path) -> None:
    """Listen from now on; torch is imported, and nothing of it was used yet."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    _end_last(run_dir)
    # With torch at hand, and not before: a process that never imports it pays nothing.
    from ddpdoctor.watch import joining, last_words, reaping
    from ddpdoctor.watch.watching import Watch

    reaping.install(run_dir)
    if last_words.may_come():
        put_aside = functools.partial(harmless(last_words.install), run_dir)
        sys.meta_path.insert(0, After(last_words.MODULE, put_aside))
    here = Watch()

    def begin(rank: int, world_size: int) -> None:
        if not here.log.is_open:
            here.begin(world_folder(run_dir), rank, world_size)

    if _is_a_launchers():
        # From here on, so that a rank which comes late, or never, is seen where it is.
        begin(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    # Also there: what such a rank forks may join in its place.
    joining.when_known(begin)
    threading._register_atexit(_begin_at_last, here, begin)  # type: ignore[attr-defined]


def _is_a_launchers() -> bool:
    """Whether a launcher has started this process as a rank, by what it has put in its environment.

    RANK alone is inherited by whatever a rank starts.
    """
    import multiprocessing

    if not {"RANK", "WORLD_SIZE", "MASTER_PORT"} <= {*os.environ}:
        return False
    return multiprocessing.parent_process() is None and not _is_a_ranks_child()


@harmless
def _begin_at_last(here: Any, begin: Any) -> None:
    """A rank that has joined no group is known by its launcher's word when it ends."""
    import multiprocessing

    if here.log.is_open or multiprocessing.parent_process() is not None or _is_a_ranks_child():
        return
    if "RANK" not in os.environ and _failed_to_start():
        begin(0, 1)
        return
    begin(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


def _failed_to_start() -> bool:
    """Whether an exception ends this process while it joined a group or started its ranks.

    What only tells that a child has failed does not count: the child tells it better. Of what
    happens inside torchrun itself, that leaves what its store says: a port that is taken, a master
    that is not reached.
    """
    error = _last_error()
    if error is None or type(error).__name__.startswith("Process"):
        return False
    if type(error).__name__ == "DistNetworkError" and any(each in str(error) for each in _UNMET):
        return True
    frames = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
    ways = ("/torch/distributed/distributed_c10d.py", "/multiprocessing/")
    return any(way in file for file in frames if "/elastic/" not in file for way in ways)


def _is_a_ranks_child() -> bool:
    """Whether RANK was merely inherited, from a rank that started this process."""
    try:
        environment = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"RANK={os.environ.get('RANK')}".encode() in environment


def world_folder(run_dir: Path) -> Path:
    """One folder for each set of ranks that belong together: their launch and restart."""
    from ddpdoctor.evidence import attempt_name
    from ddpdoctor.watch import launching

    port = str(launching.spawned_world() or os.environ.get("MASTER_PORT", "0"))
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    folder = run_dir / attempt_name(restart, port)
    with contextlib.suppress(FileExistsError):
        make_folder(folder)
    return folder

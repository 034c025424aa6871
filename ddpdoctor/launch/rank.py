"""What a rank does between its birth and its end."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NoReturn
from urllib.parse import parse_qsl, urlparse

from ddpdoctor.launch.job import Job
from ddpdoctor.launch.processes import die_with

# A real-time signal, because the milder ones belong to the job.
STACK_SIGNAL = signal.SIGRTMAX - 1
_INTERRUPTED = -signal.SIGINT  # no exit status, for 130 may be somebody's own


@dataclass
class Shared:
    """What the ranks of a job need not each do for themselves, but are forked with."""

    watch: Any = None
    function: Callable[..., Any] | None = None


def prepared(job: Job) -> Shared:
    """Do once, in the process that the ranks are forked from, what is alike in all of them.

    The watch first: what the file imports by name must be what the watch has put there.
    """
    _take_on_environment(job)
    shared = Shared()
    if job.import_once:
        if job.watch:
            from ddpdoctor.watch.watching import Watch

            shared.watch = Watch()
        with contextlib.suppress(Exception):  # each rank will raise it again, and be seen to
            shared.function = _load(job.target)
    return shared


def _take_on_environment(job: Job) -> None:
    os.environ.clear()
    os.environ.update(job.env)
    sys.path[:] = job.sys_path
    sys.argv[:] = [job.target.rpartition(":")[0]]


def live(job: Job, rank: int, keeper: int, shared: Shared) -> NoReturn:
    """Turn this process, a fresh child of `keeper`, into a rank, to the end."""
    die_with(keeper)
    os.setsid()
    _redirect_output(job, rank)
    stacks = job.rank_file(rank, "stacks").open("wb")
    faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=True)
    faulthandler.enable(file=2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    os.chdir(job.cwd)
    _adjust_libraries(job)
    if job.watch:
        from ddpdoctor.watch.watching import Watch

        watch = shared.watch or Watch()
        watch.begin(job.run_dir, rank, job.nproc)
    _exit(_call(job, rank, shared))


def _redirect_output(job: Job, rank: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for descriptor, kind in ((1, "stdout"), (2, "stderr")):
        file = os.open(job.rank_file(rank, kind), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    # A rank that is killed loses what it has buffered, which is what one wants to read.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _adjust_libraries(job: Job) -> None:
    """Have libraries that were imported before the environment was known take it in now."""
    import torch
    import torch.distributed as dist

    if (threads := job.env["OMP_NUM_THREADS"]).isdigit() and int(threads) > 1:
        torch.set_num_threads(int(threads))
    dist.set_debug_level_from_env()  # type: ignore[attr-defined]
    handlers = env_rendezvous_handlers()
    handlers["env"] = _private_rendezvous(job.rendezvous)
    # Else all ranks would draw the same numbers, which separate processes do not.
    torch.default_generator.seed()
    if "numpy" in sys.modules:
        import numpy

        numpy.random.seed()


def env_rendezvous_handlers() -> dict[str, Callable[..., Any]]:
    """Torch's table of rendezvous handlers by URL scheme.

    Raises ImportError where this torch has none: `env://` could then not be made private.
    """
    module = importlib.import_module("torch.distributed.rendezvous")  # the name is a function, too
    handlers = getattr(module, "_rendezvous_handlers", None)
    if not isinstance(handlers, dict) or "env" not in handlers:
        raise ImportError("this torch keeps its env:// rendezvous where ddpdoctor cannot find it")
    return handlers


def _private_rendezvous(path: Path) -> Callable[..., Iterator[Any]]:
    import torch.distributed as dist

    meetings = 0

    def meet(url: str, **_: object) -> Iterator[Any]:
        nonlocal meetings
        asked = {**os.environ, **{k.upper(): v for k, v in parse_qsl(urlparse(url).query)}}
        for name in ("RANK", "WORLD_SIZE"):
            if not asked.get(name):
                raise ValueError(
                    "Error initializing torch.distributed using env:// rendezvous: "
                    f"environment variable {name} expected, but not set"
                )
        meetings += 1  # a store must not be met at twice
        world_size = int(asked["WORLD_SIZE"])
        store = dist.FileStore(f"{path}-{meetings}", world_size)  # type: ignore[attr-defined]
        yield store, int(asked["RANK"]), world_size

    return meet


def _call(job: Job, rank: int, shared: Shared) -> int:
    """Call the target as an interpreter would run a script; its status, or `_INTERRUPTED`."""
    try:
        function = shared.function or _load(job.target)
        result = function(**job.kwargs)
        unfinished = job.rank_file(rank, "result.part")
        unfinished.write_text(json.dumps(result), encoding="utf-8")
        unfinished.replace(job.rank_file(rank, "result"))
    except SystemExit as request:
        return _exit_status(request.code)
    except BaseException as error:
        error.__traceback__ = _without_ours(error.__traceback__)
        sys.last_value = error  # where the interpreter leaves it, and the watch finds it
        sys.excepthook(type(error), error, error.__traceback__)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _load(target: str) -> Callable[..., Any]:
    where, _, name = target.rpartition(":")
    if where.endswith(".py"):
        module = _load_file(Path(where).absolute())
    else:
        module = importlib.import_module(where)
    function: Callable[..., Any] = getattr(module, name)
    return function


def _load_file(path: Path) -> ModuleType:
    """Import a file under its own name and with its folder on the path, so that pickle finds it."""
    sys.path.insert(0, str(path.parent))
    name = path.stem if path.stem not in sys.modules else f"{path.stem}__target"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _exit(status: int) -> NoReturn:
    """End as the interpreter does, without the teardown of modules: 0.6 s with torch."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if status == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def main() -> None:
    """Be a rank in a fresh interpreter, where the server could not be forked from."""
    request, rank, keeper = (int(argument) for argument in sys.argv[1:])
    with open(request, encoding="utf-8") as file:  # noqa: PTH123
        job = Job.from_json(file.read())
    _take_on_environment(job)
    live(job, rank, keeper, Shared())


if __name__ == "__main__":
    main()

"""Records how this process joins process groups, and tells who it is as soon as that is known."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ddpdoctor.evidence import spans
from ddpdoctor.watch import launching, surplus
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame

_RUN_IDS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE")
_SCRIPT_LIMIT = 1 << 20
_POSITION_OF_METHOD = 1
_A_LOOK = 1.0
"""Seconds that the destruction of a group waits for a look at it to be over."""

OnRank = Callable[[int, int], None]
"""Called with rank and world size."""

# By name: to go through all modules would touch, and in a forked rank copy, 7 MB of memory.
_HOLDERS = (
    "torch.distributed",
    "torch.distributed.distributed_c10d",
    "torch.distributed.device_mesh",
)
_on_rank: OnRank | None = None
_last_words: list[Callable[[], object]] = []


def when_known(on_rank: OnRank) -> None:
    """Have `on_rank` called once, before this process joins its first group if that is possible."""
    global _on_rank
    _on_rank = harmless(on_rank)


def before_leaving(note: Callable[[], object]) -> None:
    """Have `note` called each time before this process destroys a process group."""
    _last_words.append(harmless(note))


def install(log: Log) -> None:
    """Wrap `init_process_group`, `new_group` and `destroy_process_group` of this process."""
    from torch.distributed import distributed_c10d

    harmless(launching.install)()
    _replace(distributed_c10d.init_process_group, functools.partial(_join, log))
    _replace(distributed_c10d.new_group, functools.partial(_make, log))
    _replace(distributed_c10d.destroy_process_group, functools.partial(_leave, log))


def _replace(original: Any, substitute: Callable[..., Any]) -> None:
    """Put a substitute, which is handed the original, wherever torch holds a function."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return substitute(original, *args, **kwargs)

    name = original.__name__
    for key in _HOLDERS:
        module = sys.modules.get(key)
        if module is not None and module.__dict__.get(name) is original:
            setattr(module, name, call)


def _join(log: Log, original: Any, *args: Any, **kwargs: Any) -> Any:
    import torch.distributed as dist

    place = _place()
    if (known := _identity(original, args, kwargs)) is not None:
        _tell(*known)
    log.write(
        "joining",
        pid=os.getpid(),
        place=place,
        source=_digest(place),
        nested=_is_nested(args, kwargs),
        run=_run(),
        **(_meeting(original, args, kwargs) or {}),
        **(launching.facts() or {}),
    )
    result = original(*args, **kwargs)
    _tell(dist.get_rank(), dist.get_world_size())
    _note(log, dist.group.WORLD, place)
    return result


def _run() -> str:
    """The launcher's name for this run, on all hosts the same; of torchrun, maybe for this attempt.

    Where it keeps a store for all attempts, they meet at one port, and their number tells them
    apart. Else each has a port of its own; and a host that came later may count otherwise.
    """
    name = next(filter(None, map(os.environ.get, _RUN_IDS)), "")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        name += f" attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    return name


def has_joined(log: Log) -> None:
    """Take in that this process is in its first group already. Raises ValueError if it is not."""
    import torch.distributed as dist

    _tell(dist.get_rank(), dist.get_world_size())
    _note(log, dist.group.WORLD, _place())


def _make(log: Log, original: Any, *args: Any, **kwargs: Any) -> Any:
    place = _place()
    group = original(*args, **kwargs)
    _note(log, group, place)
    return group


def _leave(log: Log, original: Any, *args: Any, **kwargs: Any) -> Any:
    for note in _last_words:
        note()
    place, subgroup = _place(), _subgroup(args, kwargs)
    if not subgroup:
        # torch may abort within
        log.write("leaving", place=place, steps=log.steps, forwards=log.forwards)
    with _held_by_the_job_alone(log):
        result = original(*args, **kwargs)
    if subgroup:
        log.write("dissolved", name=subgroup)
    else:
        log.write_later("left", place=place)
    return result


@contextmanager
def _held_by_the_job_alone(log: Log) -> Iterator[None]:
    """Keep the groups from the thread that counts what they did.

    Were it the last to hold one it would free it, and torch joins gloo's threads there with the
    GIL held, which these may want (torch 2.13; see `stack/process_group.py`).
    """
    is_held = log.looking_at_groups.acquire(timeout=_A_LOOK)
    log.destroys_groups = True
    if is_held:
        log.looking_at_groups.release()
    try:
        yield
    finally:
        log.destroys_groups = False


@harmless
def _subgroup(args: Any, kwargs: Any) -> str:
    """The name of the one group that is destroyed; "" where it is the world, and so all of them."""
    import torch.distributed as dist

    group = args[0] if args else kwargs.get("group")
    is_one = isinstance(group, dist.ProcessGroup) and group is not dist.group.WORLD
    return str(group.group_name) if is_one else ""


_place = harmless(users_frame)


@harmless
def _digest(place: Frame | None) -> str:
    """What the script that joins is, so that ranks which run another version of it are found."""
    if place is None or (size := Path(place[0]).stat().st_size) > _SCRIPT_LIMIT or not size:
        return ""
    return hashlib.blake2b(Path(place[0]).read_bytes(), digest_size=8).hexdigest()


@harmless
def _meeting(original: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Where this process is to meet the others, and how many it says there are."""
    said = inspect.signature(original).bind_partial(*args, **kwargs).arguments
    method = said.get("init_method")
    wanted = said.get("world_size", -1)
    if method in (None, "env://") or "?" in method:
        wanted = wanted if wanted > 0 else int(os.environ.get("WORLD_SIZE", "-1"))
    if said.get("store") is not None:
        return {"meeting": "", "wanted": wanted}
    if method in (None, "env://"):
        host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
        return {"meeting": f"{host}:{port}" if host and port else "", "wanted": wanted}
    return {"meeting": method.partition("://")[2].partition("?")[0], "wanted": wanted}


@harmless
def _is_nested(args: Any, kwargs: Any) -> bool:
    """Whether a rank of torchrun has started this process, which joins where that rank would."""
    import multiprocessing

    elsewhere = kwargs.get("store") is not None or kwargs.get("init_method") not in (None, "env://")
    return (
        not elsewhere
        and len(args) < _POSITION_OF_METHOD + 1
        and "TORCHELASTIC_RUN_ID" in os.environ
        and multiprocessing.parent_process() is not None
    )


def _tell(rank: int, world_size: int) -> None:
    global _on_rank
    on_rank, _on_rank = _on_rank, None
    if on_rank is not None:
        on_rank(rank, world_size)


@harmless
def _identity(original: Any, args: Any, kwargs: Any) -> tuple[int, int] | None:
    """Rank and world size, if they are said in the call or by the environment that it reads."""
    said = inspect.signature(original).bind_partial(*args, **kwargs).arguments
    rank, world_size = said.get("rank", -1), said.get("world_size", -1)
    if said.get("store") is None and said.get("init_method") in (None, "env://"):
        rank = rank if rank >= 0 else int(os.environ["RANK"])
        world_size = world_size if world_size > 0 else int(os.environ["WORLD_SIZE"])
    return (rank, world_size) if rank >= 0 and world_size > 0 else None


@harmless
def _note(log: Log, group: Any, place: Frame | None) -> None:
    import torch.distributed as dist

    if not isinstance(group, dist.ProcessGroup):
        return
    surplus.listen(log)
    log.write(
        "group",
        name=group.group_name,
        ranks=spans(dist.get_process_group_ranks(group)),
        backend=dist.get_backend(group),
        timeout=_timeout(group),
        place=place,
    )


def _timeout(group: Any) -> float:
    """Seconds after which a collective of this group gives up; 0 where torch does not tell."""
    import torch

    for device in group._device_types:
        options = getattr(group._get_backend(torch.device(device)), "options", None)
        if options is not None:
            return float(options._timeout.total_seconds())
    return 0.0

"""Knows who has started this process, and how many beside it.

A launcher says so in the environment that it gives its ranks. `mp.spawn` says nothing, so the watch
in the process that calls it does, in DDPDOCTOR_SPAWN, which its children inherit.
"""

from __future__ import annotations

import functools
import importlib
import json
import multiprocessing
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from ddpdoctor.evidence import boot
from ddpdoctor.watch.exceptions import hide
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import Frame, users_frame

_SPAWN = "DDPDOCTOR_SPAWN"
_TASKS = {"mpirun": "OMPI_COMM_WORLD_SIZE", "srun": "SLURM_STEP_NUM_TASKS"}
"""Of launchers that start processes and give them no rank: what says how many these are."""
_TOLD = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK")
_FIRST_NODE = re.compile(r"([^,\[\]]+)(?:\[([0-9]+))?")
"""Of a list of nodes, as in "gpu[07-09,12],login": what its first name begins and goes on with."""
_spawned = 0
_set_at: dict[str, Frame] = {}
"""The lines that have set a variable by which ranks find each other."""


def install() -> None:
    """Have the children of `mp.spawn` know how many they are, and which line has started them."""
    # Not `import torch.multiprocessing.spawn`, which is a function of the same name.
    spawn: Any = importlib.import_module("torch.multiprocessing.spawn")
    original = spawn.start_processes

    @functools.wraps(original)
    def start(fn: Any, args: Any = (), nprocs: int = 1, *rest: Any, **kwargs: Any) -> Any:
        before = os.environ.get(_SPAWN)
        _say(nprocs)
        try:
            return original(fn, args, nprocs, *rest, **kwargs)
        except BaseException as error:
            hide(error)
            raise
        finally:
            _restore(before)

    spawn.start_processes = start
    for holder in ("torch.multiprocessing",):
        module: Any = importlib.import_module(holder)
        if getattr(module, "start_processes", None) is original:
            module.start_processes = start
    _listen_to_environment()


def _listen_to_environment() -> None:
    """Remember which of the user's lines set what a launcher should have set."""
    environment: Any = type(os.environ)
    original = environment.__setitem__

    @harmless
    def note(name: str) -> None:
        if (place := users_frame()) is not None:
            _set_at[name] = place

    @functools.wraps(original)
    def set_item(self: Any, key: Any, value: Any) -> None:
        original(self, key, value)
        if key in _TOLD and self is os.environ:
            note(key)

    environment.__setitem__ = set_item


@harmless
def _say(nprocs: int) -> None:
    global _spawned
    _spawned += 1
    said = {"id": os.getpid() * 100 + _spawned % 100, "nprocs": nprocs, "place": users_frame()}
    os.environ[_SPAWN] = json.dumps(said)


@harmless
def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(_SPAWN, None)
    else:
        os.environ[_SPAWN] = before


def spawned_world() -> int | None:
    """A number for the `mp.spawn` that has started this process, unless a launcher did too."""
    said = _said()
    return int(said["id"]) if said and not _is_torchruns() else None


def _said() -> dict[str, Any] | None:
    word = os.environ.get(_SPAWN)
    return json.loads(word) if word and multiprocessing.parent_process() is not None else None


def _is_torchruns() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def process() -> dict[str, Any]:
    """Who this process is, with the names of the event that begins its log."""
    here = os.environ.get("LOCAL_WORLD_SIZE", "") if _is_torchruns() else ""
    return {
        "pid": os.getpid(),
        "boot": boot(),
        "host": os.uname().nodename,
        "agent": os.getppid() if _is_torchruns() else 0,
        "local_world_size": int(here) if here.isdecimal() else 0,
        "parent": _parent(),
        "wall": time.time(),
        "python": sys.version.split()[0],
    }


@harmless
def _parent() -> int:
    """The process that has started this one by multiprocessing and waits for it as it exits."""
    parent = multiprocessing.parent_process()
    waits = parent is not None and not multiprocessing.current_process().daemon
    return parent.pid or 0 if parent is not None and waits else 0


@harmless
def facts() -> dict[str, Any]:
    """What is known of the launch, with the names of `RankEvidence`."""
    return {
        **_launcher(),
        "master": _master(),
        "set_at": _set_at,
        "unhosted": bool(_is_unhosted()),
    }


def _master() -> str:
    """Host and port that are named for rank 0; of Slurm, its first node, and the job's number."""
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if host and port:
        return f"{host}:{port}"
    nodes = _FIRST_NODE.match(os.environ.get("SLURM_STEP_NODELIST", ""))
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{nodes[1]}{nodes[2] or ''}:{job}" if nodes and job else ""


@harmless
def _is_unhosted() -> bool:
    """Whether all are clients of the store that torchrun hosts, and ask for it elsewhere."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return False
    began = Path("/proc/self/environ").read_bytes().split(b"\0")
    if multiprocessing.parent_process() is not None:  # what the rank that has started it began with
        began = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
    port = next(
        (v for k, _, v in (each.partition(b"=") for each in began) if k == b"MASTER_PORT"), b""
    )
    return bool(port) and port.decode() != os.environ.get("MASTER_PORT")


def _launcher() -> dict[str, Any]:
    """Which it is, how many processes it has started in all (0: not known), by which line."""
    if _is_torchruns():
        alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
        started = int(os.environ.get("LOCAL_WORLD_SIZE", "0")) if alone else 0
        spawned = _said() or {}  # by a rank of torchrun's
        return {"launcher": "torchrun", "started": started, "started_at": spawned.get("place")}
    if (said := _said()) is not None:
        return {"launcher": "mp.spawn", "started": said["nprocs"], "started_at": said["place"]}
    for launcher, variable in _TASKS.items():
        if variable in os.environ:
            return {"launcher": launcher, "started": int(os.environ[variable]), "started_at": None}
    return {"launcher": "", "started": 0, "started_at": None}

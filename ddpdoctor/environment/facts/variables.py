"""The variables that are set, and what the installed libraries know of odd ones."""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Absent, FileSetting, Search, SetVariable, Unknown
from ddpdoctor.environment.redaction import HIDDEN
from ddpdoctor.environment.variables import for_nccl, known, nearest, of_a_family

# To look for one name in torch's libraries takes up to a second. Names that are left when the time
# is up are in neither list: not found out.
_SECONDS = 10.0


def variables(
    machine: Machine, in_files: tuple[FileSetting, ...] | Unknown = ()
) -> tuple[SetVariable, ...]:
    """Every set variable that is in the table, in a family of it, or all but spelt like it."""
    chosen = {
        name: (value, None) for name, value in machine.environ.items() if _is_of_interest(name)
    } | {one.name: (one.value, one.file) for one in _in_effect(machine, in_files)}
    return tuple(_describe(machine, name, *chosen[name]) for name in sorted(chosen))


def _is_of_interest(name: str) -> bool:
    return name in known() or of_a_family(name) or nearest(name) is not None


def _in_effect(
    machine: Machine, in_files: tuple[FileSetting, ...] | Unknown
) -> Iterable[FileSetting]:
    """What the files set and the environment does not: NCCL takes the first that it meets.

    Of these only what NCCL may read: PyTorch has read its own before NCCL reads these files.
    """
    found: dict[str, FileSetting] = {}
    for one in in_files if isinstance(in_files, tuple) else ():
        if for_nccl(one.name) and one.name not in machine.environ:
            found.setdefault(one.name, one)
    return found.values()


def _describe(machine: Machine, name: str, value: str, file: str | None) -> SetVariable:
    row = known().get(name)
    shown = machine.redactor.value(name, value)
    return SetVariable(
        name=name,
        value=shown,
        redacted=shown != value or shown == HIDDEN,
        status=row.status if row else "unknown",
        read_by=row.read_by if row else "nothing known",
        file=file,
    )


def search(machine: Machine, in_files: tuple[FileSetting, ...] | Unknown = ()) -> Search | Absent:
    """Which of the odd names the installed libraries contain.

    Absence is certain: the libraries hold each name they look up as one string. Presence is not: a
    linker stores a name that another one ends with only once. So a name of which the table says
    that nobody reads it is in neither list where others merely end with it (NCCL_TIMEOUT, with
    `_DEFAULT_PG_NCCL_TIMEOUT` of torch's).
    """
    odd = [
        name
        for name in sorted({*machine.environ, *(one.name for one in _in_effect(machine, in_files))})
        if (name in known() and known()[name].status in ("phantom", "removed"))
        or (name not in known() and _is_of_interest(name))
    ]
    if not odd:
        return Absent(absent="no variable gave a reason to search the libraries")
    libraries = tuple(_libraries())
    if not libraries:
        return Absent(absent="neither torch nor NCCL is installed")
    deadline = time.monotonic() + _SECONDS
    present: list[str] = []
    absent: list[str] = []
    for name in odd:
        if time.monotonic() > deadline:
            break
        if not _contains(libraries, name):
            absent.append(name)
        elif name not in known() or _contains(libraries, name, before=b"\0"):
            present.append(name)
    return Search(
        libraries=tuple(path.name for path in libraries if path.suffix != ".py"),
        present=tuple(present),
        absent=tuple(absent),
    )


def _libraries() -> Iterator[Path]:
    """The shared libraries that look variables up, then torch's Python sources that do."""
    torch = find_spec("torch")
    nvidia = find_spec("nvidia")
    for folder in nvidia.submodule_search_locations or () if nvidia else ():
        yield from sorted(Path(folder).glob("nccl/lib/libnccl.so*"))
    for folder in torch.submodule_search_locations or () if torch else ():
        for stem in ("libtorch_cuda", "libtorch_cpu", "libtorch_python", "libc10", "libc10_cuda"):
            yield from Path(folder).glob(f"lib/{stem}.so")
        yield from sorted(Path(folder).glob("distributed/**/*.py"))


def _contains(libraries: Iterable[Path], name: str, before: bytes = b"") -> bool:
    raw = name.encode(errors="surrogateescape")
    in_binary, in_source = (before + raw + b"\0",), (b'"%b"' % raw, b"'%b'" % raw)
    return any(
        _occurs(path, in_source if path.suffix == ".py" else in_binary) for path in libraries
    )


def _occurs(path: Path, needles: Iterable[bytes]) -> bool:
    if path.stat().st_size == 0:
        return False  # cannot be mapped
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(needle) >= 0 for needle in needles)

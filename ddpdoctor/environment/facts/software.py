"""Python, PyTorch and NCCL, without importing torch into this process."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine, NoAnswer, Question
from ddpdoctor.environment.model import Absent, Python, Torch, TorchFailure

_DISTRIBUTION = re.compile(r"([\w.-]+?)-([0-9][^-]*)\.(?:dist|egg)-info")
_OF_TRAINING = re.compile(
    "numpy|torchvision|torchaudio|torchdata|triton|pytorch-triton|accelerate|deepspeed|lightning|"
    "pytorch-lightning|transformers|datasets|horovod|ray|mpi4py|flash-attn|xformers|apex|"
    "nvidia-(?!nccl-).*"
)
_COMPILERS = ("gcc", "clang", "nvcc", "cmake", "ninja")
_MOST_LINES = 60
_PROBE = Path(__file__).with_name("torch_probe.py")
_MAY_BREAK_IMPORTS = re.compile(
    r"(PY)?TORCH\w*|CUDA_\w+|TRITON_\w+|LD_(LIBRARY_PATH|PRELOAD|AUDIT)|PYTHON(PATH|HOME)"
)
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception)(?::\s*\S.*)?$", re.MULTILINE)
_THROWN = re.compile(r"^ *what\(\): *(.+)$", re.MULTILINE)
_NOT_THERE = re.compile(r"^ModuleNotFoundError: No module named 'torch'$", re.MULTILINE)


def python(machine: Machine) -> Python:
    """The interpreter."""
    return Python(
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        executable=sys.executable,
        platform=platform.platform(),
        system=_system(machine),
    )


def interpreter(machine: Machine) -> str | Absent:
    """What torchrun starts its ranks with."""
    named = machine.environ.get("PYTHON_EXEC", sys.executable)
    found = shutil.which(named, path=machine.environ.get("PATH"))
    if found and _is_this_one(Path(found)):
        return sys.executable
    return found or Absent(absent=machine.redactor.text(f"there is no program {named}"))


def _is_this_one(program: Path) -> bool:
    """By another name, or not: the folder is what tells a virtual environment from another."""
    own = Path(sys.executable)
    return program.parent.resolve() == own.parent.resolve() and program.resolve() == own.resolve()


def _system(machine: Machine) -> str:
    try:
        lines = machine.read("etc/os-release").splitlines()
    except OSError:
        return ""
    named = (line.partition("=")[2].strip('"') for line in lines if line.startswith("PRETTY_NAME="))
    return next(named, "")


def ask_torch(machine: Machine) -> Question:
    """Have PyTorch imported as the user's own process would, in a child. Raises NoAnswer.

    A child costs an import of torch, and nothing that torch does, prints, spawns or dies of can
    reach us.
    """
    # -P: or the probe's own folder would come first on sys.path, and torch might import from it.
    return machine.asking([sys.executable, "-P", str(_PROBE)])


def torch(machine: Machine, asked: Question | None = None) -> Torch | TorchFailure | Absent:
    """What that child says, which may have been `asked` before. Raises NoAnswer."""
    status, output, errors = (asked or ask_torch(machine)).answer()
    if status == 0:
        found = Torch.model_validate_json(output.splitlines()[-1])
        return found.model_copy(
            update={
                "cuda_failure": found.cuda_failure and machine.redactor.text(found.cuda_failure),
                "refused": tuple((n, machine.redactor.text(why)) for n, why in found.refused),
            }
        )
    if _NOT_THERE.search(errors):
        return Absent(absent="torch is not installed for this interpreter")
    error = _last_words(status, errors)
    if folder := _closed():
        error = f"{folder} may not be read by this user ({error})"
    return TorchFailure(
        version=_version_of("torch"),
        error=machine.redactor.text(error),
        because_of=tuple(
            (name, machine.redactor.value(name, machine.environ[name]))
            for name in _in_the_way(machine)
        ),
    )


def _last_words(status: int, errors: str) -> str:
    """Of a traceback the exception, of C++ what it threw, else the last line, or how it ended."""
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    if status < 0:
        return ": ".join((how, *_THROWN.findall(errors)[-1:]))
    lines = [line for line in errors.splitlines() if line.strip()]
    last = [how, *lines[-1:], *(raised[0] for raised in _RAISED.finditer(errors))][-1]
    return " ".join(last.split())


def _in_the_way(machine: Machine) -> tuple[str, ...]:
    """The variables, as few as can be, without which torch is imported: each is tried."""
    suspects = {name for name in machine.environ if _MAY_BREAK_IMPORTS.fullmatch(name)}
    if not suspects or not _imports(machine, suspects):
        return ()
    guilty = set(suspects)
    # First those that say which torch it is: the values are tried with that one.
    for name in sorted(suspects, key=lambda each: (not each.startswith(("LD_", "PYTHON")), each)):
        if _imports(machine, guilty - {name}):
            guilty.remove(name)
    return tuple(sorted(guilty))


def _imports(machine: Machine, without: set[str]) -> bool:
    """Whether torch can be imported where these variables are not set."""
    environ = {name: value for name, value in machine.environ.items() if name not in without}
    try:
        return ask_torch(replace(machine, environ=environ)).answer()[0] == 0
    except NoAnswer:
        return False


def _closed() -> Path | None:
    """Where torch lies, if this user may not look in: Python then takes it for an empty package."""
    return next(filter(_is_closed, (Path(folder, "torch") for folder in sys.path)), None)


def _is_closed(folder: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    try:
        return folder.is_dir() and not os.access(folder, os.R_OK, effective_ids=effective)
    except PermissionError:  # what it lies in is closed: nobody can say what is in there
        return False


def packages(_: Machine) -> tuple[str, ...]:
    """Installed distributions that bear on training, but for NCCL's own."""
    return _installed(_OF_TRAINING)


def nccl_packages(_: Machine) -> tuple[str, ...]:
    """Installed nvidia-nccl-* distributions."""
    return _installed(re.compile("nvidia-nccl-.*"))


def _installed(wanted: re.Pattern[str]) -> tuple[str, ...]:
    found = (
        (found[1], found[2])
        for folder in dict.fromkeys(sys.path)
        for entry in _entries(folder)
        if (found := _DISTRIBUTION.fullmatch(entry))
    )
    named = ((re.sub("[-_.]+", "-", name).lower(), version) for name, version in found)
    return tuple(sorted({f"{name} {rest}" for name, rest in named if wanted.fullmatch(name)}))


def _entries(folder: str) -> list[str]:
    # By the names of folders: to read all their files, as importlib.metadata does, takes longer.
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []


def compilers(machine: Machine) -> tuple[str, ...]:
    """What can build extensions of torch and of deepspeed."""
    found = []
    for name in _COMPILERS:
        if shutil.which(name, path=machine.environ.get("PATH", "")):
            _, said, _ = machine.ask([name, "--version"], seconds=5)
            version = re.search(r"[0-9]+\.[0-9][0-9.]*", said)
            found.append(f"{name} {version[0] if version else 'of unknown version'}")
    return tuple(found)


def accelerate_defaults(machine: Machine) -> tuple[str, ...] | Absent:
    """What `accelerate launch` takes where it is told nothing. Raises OSError."""
    environ = machine.environ
    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/") / ".cache")
    home = Path(environ.get("HF_HOME") or cache / "huggingface").expanduser()
    for name in ("default_config.json", "default_config.yaml"):
        path = home / "accelerate" / name
        if path.is_file():
            text = machine.redactor.text(path.read_text(encoding="utf-8", errors="replace"))
            return (machine.redactor.text(str(path)), *text.splitlines()[:_MOST_LINES])
    return Absent(absent="accelerate has no default configuration here")


def _version_of(package: str) -> str:
    try:
        # Without a right to read what says it, there is none.
        return metadata.version(package) or "unknown"
    except metadata.PackageNotFoundError:
        return "unknown"

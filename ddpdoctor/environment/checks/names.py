"""Names that nobody reads, that are misspelt, old, or meant for debugging."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import (
    exported,
    finding,
    origin,
    setting,
    taken_away,
    unset,
)
from ddpdoctor.environment.model import Environment, Search, SetVariable, Torch
from ddpdoctor.environment.variables import Variable, known, nearest


def ignored(environment: Environment) -> Iterator[Finding]:
    """DDP109: variables that people set though nothing reads them, or no longer."""
    for variable in environment.variables:
        if variable.status not in ("phantom", "removed", "script"):
            continue
        if _is_read_here(environment, variable.name):
            continue
        row = known()[variable.name]
        yield finding(
            "DDP109",
            "info" if variable.status == "script" else "warning",
            f"{setting(variable.name, variable.value)} has no effect",
            f"Instead: {row.instead}." if row.instead else "Remove it.",
            notes=(*_why_ignored(environment, variable, row), *origin(variable)),
            commands=taken_away(variable),
        )


def _why_ignored(environment: Environment, variable: SetVariable, row: Variable) -> Iterator[str]:
    yield _nobody_reads(environment, variable.name)
    if variable.status == "script":
        yield "harmless if your own script reads it"
    if row.note:
        yield row.note
    if "timeout=" in row.instead:
        yield "without timeout=, a gloo group gives up after 30 minutes, an NCCL group after 10"


def unknown(environment: Environment) -> Iterator[Finding]:
    """DDP701: names in no table, most of them misspelt."""
    for variable in environment.variables:
        if variable.status != "unknown" or _is_read_here(environment, variable.name):
            continue
        meant = nearest(variable.name)
        proven = _is_read_nowhere(environment, variable.name)
        yield finding(
            "DDP701",
            "warning" if meant else "info",
            f"{setting(variable.name, variable.value)}: no such variable is known",
            _advice(meant),
            notes=(
                _nobody_reads(environment, variable.name),
                *((f"{meant} is {known()[meant].reader}",) if meant else ()),
                *(() if meant else ("harmless if a plugin or your own script reads it",)),
                *origin(variable),
            ),
            commands=_correction(variable, meant) if meant else taken_away(variable),
            certainty="proven" if proven else "evidence",
        )


def _advice(meant: str | None) -> str:
    if not meant:
        return "Check the spelling, or remove it."
    # Who follows this advice must not be surprised by the next `env`, which calls it DDP705.
    passing = known()[meant].status == "debug"
    return f"Did you mean {meant}?" + (" Unset it once you are done with it." if passing else "")


def _correction(variable: SetVariable, meant: str) -> tuple[str, ...]:
    if variable.redacted:
        return taken_away(variable)
    if variable.file is not None:
        return (f"sed -i 's/^{variable.name}=/{meant}=/' {shlex.quote(variable.file)}",)
    return (exported(meant, variable.value), *unset(variable.name))


def renamed(environment: Environment) -> Iterator[Finding]:
    """DDP702: old names that PyTorch still reads."""
    for variable in environment.variables:
        if variable.status != "legacy":
            continue
        new = known()[variable.name].instead
        if environment.value(new) is not None:
            continue  # the new name counts; whether the two agree is `conflicts`' business
        warns = "" if new == "PYTORCH_ALLOC_CONF" else ", and warns"
        notes = [
            f"harmless for now: PyTorch still reads it{warns}",
            f"{new} is {known()[new].reader}",
        ]
        if new == "TORCH_NCCL_ASYNC_ERROR_HANDLING":
            notes.append("torchrun sets the new name to 1 for its ranks: there it is lost")
        yield finding(
            "DDP702",
            "info",
            f"{variable.name} is an old name",
            f"Set {new} instead.",
            notes=notes,
            commands=_correction(variable, new),
        )


def obsolete(environment: Environment) -> Iterator[Finding]:
    """DDP702: settings that ask for what is the default by now."""
    for variable in environment.variables:
        if variable.status == "obsolete":
            yield finding(
                "DDP702",
                "info",
                f"{variable.name} is no longer needed",
                "Remove it.",
                notes=(
                    "harmless: what it asks for is the default now, and PyTorch warns",
                    known()[variable.name].reader,
                ),
                commands=unset(variable.name),
            )


def left_on(environment: Environment) -> Iterator[Finding]:
    """DDP705: settings that belong to a debugging session."""
    for_nccl = []
    for variable in environment.variables:
        row = known().get(variable.name)
        if row is None or row.status != "debug" or _is_off(variable, row):
            continue
        if row.read_by == "NCCL":
            for_nccl.append(variable)
        elif variable.name != "TORCH_DISTRIBUTED_DEBUG":  # `software` knows more about that one
            yield _left_on(environment, variable, row)
    if for_nccl:
        first = setting(for_nccl[0].name, for_nccl[0].value)
        more = f" and {len(for_nccl) - 1} more" if for_nccl[1:] else ""
        yield finding(
            "DDP705",
            "info",
            f"{first}{more}: meant for debugging NCCL",
            "Remove what you do not need: NVIDIA says not to keep these in scripts.",
            notes=(
                *(f"{setting(v.name, v.value)} is {known()[v.name].reader}" for v in for_nccl),
                *dict.fromkeys(note for variable in for_nccl for note in origin(variable)),
                "harmless if you set it on purpose",
            ),
            commands=[one for variable in for_nccl for one in taken_away(variable)],
        )


def _left_on(environment: Environment, variable: SetVariable, row: Variable) -> Finding:
    has_gpus = isinstance(environment.gpus, tuple) and len(environment.gpus) > 0
    harmless = (
        "harmless if you are debugging" if has_gpus else "harmless here: no NVIDIA GPU is seen"
    )
    costly = row.slow and has_gpus
    return finding(
        "DDP705",
        "warning" if costly else "info",
        f"{setting(variable.name, variable.value)} is meant for debugging",
        "Remove it once you are done.",
        notes=(row.reader, *(() if costly else (harmless,))),
        commands=unset(variable.name),
    )


def _is_off(variable: SetVariable, row: Variable) -> bool:
    value = variable.value.strip().lower()
    if row.name == "NCCL_DEBUG":
        return value in ("", "version", "warn")
    if row.name.endswith("_DISABLE") or row.default == "0":
        return value in ("", "0", "n", "no", "f", "false")
    return value in ("", row.default.lower())


def _nobody_reads(environment: Environment, name: str) -> str:
    version = f" {environment.torch.version}" if isinstance(environment.torch, Torch) else ""
    if not isinstance(environment.search, Search) or name not in environment.search.absent:
        return "neither PyTorch, torchrun nor NCCL is known to read it"
    searched = f"searched {len(environment.search.libraries)} libraries for the name"
    if _covers_nccl(environment.search):
        return f"neither PyTorch{version} nor NCCL reads it ({searched})"
    return f"PyTorch{version} does not read it ({searched}); NCCL is not installed here"


def _is_read_here(environment: Environment, name: str) -> bool:
    return isinstance(environment.search, Search) and name in environment.search.present


def _is_read_nowhere(environment: Environment, name: str) -> bool:
    if not isinstance(environment.search, Search) or name not in environment.search.absent:
        return False
    return not name.startswith("NCCL_") or _covers_nccl(environment.search)


def _covers_nccl(search: Search) -> bool:
    # NCCL may be linked into libtorch_cuda instead of lying beside it.
    return any("nccl" in library or "torch_cuda" in library for library in search.libraries)

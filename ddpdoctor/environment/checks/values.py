"""Values that are not read as they were meant."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from ddpdoctor.catalog import Finding, Severity
from ddpdoctor.environment.checks.finding import finding, origin, setting, taken_away
from ddpdoctor.environment.model import Environment, SetVariable, Torch
from ddpdoctor.environment.variables import Variable, known

_C10D_BOOLS = ("y", "yes", "1", "t", "true", "n", "no", "0", "f", "false")
_MEANT_AS_ON = ("y", "yes", "t", "true", "on")
_STRTOLL = re.compile(r"\s*[+-]?(0x[0-9a-f]+|[0-9]+)", re.IGNORECASE)
_STOI = re.compile(r"\s*[+-]?[0-9]+")
_POSITIVE = re.compile(r"\s*0*[1-9][0-9]*\s*")
_ADDRESS_AND_PORT = re.compile(r"[^:]+:[0-9]+|\[.*\].*")


@dataclass(frozen=True, slots=True)
class _Misread:
    severity: Severity
    becomes: str
    """What happens instead of what was meant."""
    expected: str
    fault: str = "not understood"


def misread(environment: Environment) -> Iterator[Finding]:
    """DDP703: values that raise, or that are read as something else than they say."""
    for variable, row, problem in _misread(environment):
        # Only what this torch reads can end it. A value that is read otherwise stays worth a
        # warning: the same lines of a job's script go to the nodes with GPUs.
        harmless = problem.severity == "error" and row.of_nccl and environment.lacks_nccl
        yield finding(
            "DDP703",
            "info" if harmless else problem.severity,
            f"{setting(variable.name, variable.value)} is {problem.fault}",
            f"Set it to {problem.expected}, or remove it.",
            notes=(
                problem.becomes,
                row.reader,
                *origin(variable),
                *(("harmless here: torch has no NCCL",) if harmless else ()),
            ),
            commands=taken_away(variable),
        )


def refused(environment: Environment) -> Iterator[Finding]:
    """DDP703: values that the installed torch itself refused when it was tried."""
    torch, told = environment.torch, misread_names(environment)
    for name, words in torch.refused if isinstance(torch, Torch) else ():
        variable = environment.variable(name)
        if variable is None or name in told:
            continue
        unused = known()[name].read_by_allocator and not _has_gpus(environment)
        yield finding(
            "DDP703",
            "info" if unused else "error",
            f"{setting(name, variable.value)} is refused by torch",
            "Mend it, or remove it.",
            notes=(
                # Torch quotes parts of a value, by which no secret is known again.
                "tried" if variable.redacted else f"tried; torch says: {words}",
                known()[name].reader,
                *(("harmless here: no GPU is seen, and only its memory is meant",) * unused),
            ),
            commands=taken_away(variable),
        )


def _has_gpus(environment: Environment) -> bool:
    return isinstance(environment.torch, Torch) and environment.torch.visible_gpus != 0


def unusable_files(environment: Environment) -> Iterator[Finding]:
    """DDP703: files that a variable names, and that are not there or not for this user."""
    files = environment.unusable_files
    for name, why in files if isinstance(files, tuple) else ():
        variable, row = environment.variable(name), known()[name]
        if variable is None:
            continue
        severity, aside = _weight_of_a_file(environment, row)
        yield finding(
            "DDP703",
            severity,
            f"{setting(name, variable.value)} cannot be "
            + ("read" if row.kind == "input file" else "written"),
            "Name another file, make that folder, or remove it.",
            notes=(why, row.misread, row.reader, *aside),
            commands=taken_away(variable),
        )


def _weight_of_a_file(environment: Environment, row: Variable) -> tuple[Severity, tuple[str, ...]]:
    if row.of_nccl and environment.lacks_nccl:
        return "info", ("harmless here: torch has no NCCL",)
    if row.kind == "log file":
        return "info", ("harmless for training",)
    return "error" if row.fatal else "warning", ()


def misread_names(environment: Environment) -> frozenset[str]:
    """Names of the variables that `misread` speaks about."""
    return frozenset(variable.name for variable, _, _ in _misread(environment))


def _misread(environment: Environment) -> Iterator[tuple[SetVariable, Variable, _Misread]]:
    for variable in environment.variables:
        row = known().get(variable.name)
        if row is None or variable.redacted:
            continue
        bounded = known()[row.instead] if row.status == "legacy" else row
        if problem := _problem(row, variable.value) or _out_of_bounds(bounded, variable.value):
            yield variable, row, problem


def _out_of_bounds(row: Variable, value: str) -> _Misread | None:
    if row.least is None or not _is_int(value):
        return None
    if row.least <= int(value) and (row.most is None or int(value) <= row.most):
        return None
    bounds = f"{row.least} on" if row.most is None else f"{row.least} to {row.most}"
    severity: Severity = "error" if row.fatal else "warning"
    then = row.beyond or row.misread
    return _Misread(severity, then, f"a number from {bounds}", fault="out of range")


def _problem(row: Variable, value: str) -> _Misread | None:
    match row.kind:
        case "python int":
            return _python_int(row, value)
        case "node count":
            return _node_count(row, value)
        case "port":
            return _port(row, value)
        case "zero or one":
            return None if _is_int(value) else _raises(row, "0 or 1")
        case "c10d int":
            return _c10d_int(row, value)
        case "c10d bool":
            return None if value.lower() in _C10D_BOOLS else _raises(row, "0 or 1")
        case "exactly 1":
            return _exactly_one(value)
        case "c int":
            return _c_int(row, value)
        case "threads":
            return _threads(value)
        case "host":
            return _host(value)
        case "choice":
            return _choice(row, [value.upper()], row.choices)
        case "exact choice":
            return _choice(row, [value], row.choices)
        case "pattern":
            return _pattern(row, value)
        case "choices":
            return _choice(row, value.upper().split(","), row.choices)
        case _:
            return None


def _pattern(row: Variable, value: str) -> _Misread | None:
    if re.fullmatch(row.pattern, value):
        return None
    return _Misread("error" if row.fatal else "warning", row.misread, row.expected)


def _raises(row: Variable, expected: str) -> _Misread:
    return _Misread("error", row.misread or f"{row.read_by} raises an error", expected)


def _c10d_int(row: Variable, value: str) -> _Misread | None:
    digits = _STOI.match(value)
    if digits is None:
        return _raises(row, "a number")
    if digits.end() == len(value):
        return None
    return _Misread("warning", f"{row.read_by} reads it as {digits[0].strip()}", "a number")


def _is_int(value: str) -> bool:
    try:
        int(value)
    except ValueError:
        return False
    return True


def _python_int(row: Variable, value: str) -> _Misread | None:
    # PyTorch takes an empty RANK for an unset one, and nothing that only scripts read is empty.
    if _is_int(value) or not (value or row.default):
        return None
    return _Misread("error", "int() of it raises ValueError", "a whole number")


def _node_count(row: Variable, value: str) -> _Misread | None:
    counts = [int(one) if _is_int(one) else 0 for one in value.split(":")]
    if len(counts) <= 2 and 0 < counts[0] <= counts[-1]:
        return None
    return _Misread("error", row.misread, "a number of nodes, or MIN:MAX")


def _port(row: Variable, value: str) -> _Misread | None:
    if not _is_int(value):
        return _python_int(row, value)
    if 0 <= int(value) <= 65535:
        return None
    expected = "a port from 1024 to 65535"
    return _Misread("error", "the rendezvous raises ValueError", expected, fault="out of range")


def _exactly_one(value: str) -> _Misread | None:
    if value.strip().lower() not in _MEANT_AS_ON:
        return None
    return _Misread("warning", "only 1 switches it on: this counts as off", "1")


def _c_int(row: Variable, value: str) -> _Misread | None:
    # As C's strtoll with base 0 does: what stands after the digits is dropped, no digits are 0.
    digits = _STRTOLL.match(value)
    if not value or (digits and not value[digits.end() :].strip()):
        return None
    read_as = digits[0].strip() if digits else "0"
    return _Misread("warning", f"{row.read_by} reads it as {read_as}", "a number (1 for yes)")


def _threads(value: str) -> _Misread | None:
    if not value or all(_POSITIVE.fullmatch(number) for number in value.split(",")):
        return None
    becomes = "the library says so, and takes all CPUs, in every rank"
    return _Misread("warning", becomes, "a positive number")


def _host(value: str) -> _Misread | None:
    if "/" not in value and not _ADDRESS_AND_PORT.fullmatch(value) and value == value.strip():
        return None
    becomes = "nothing can connect to it: the rendezvous fails after its timeout"
    return _Misread("error", becomes, "a bare name or address")


def _choice(row: Variable, values: Iterable[str], choices: Container[str]) -> _Misread | None:
    if all(value in choices or not (value or row.fatal) for value in values):
        return None
    named = [choice for choice in row.choices if not choice.startswith("^")]
    return _Misread("error" if row.fatal else "warning", row.misread, f"one of {', '.join(named)}")

"""The codes that `env` and `probe` give, and how a finding of theirs is put together."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Literal

from ddpdoctor.catalog import Certainty, Cure, Finding, Severity
from ddpdoctor.environment.model import SetVariable

# Titles by code. DDP1xx and DDP6xx are the catalogue's; DDP7xx are assigned here, for ever.
TITLES = {
    "DDP104": "port-in-use",
    "DDP105": "wrong-world-size",
    "DDP106": "devices-not-bound",
    "DDP107": "wrong-interface",
    "DDP108": "unreachable-peer",
    "DDP109": "variable-ignored",
    "DDP110": "mixed-nodes",
    "DDP114": "double-launch",
    "DDP603": "thread-oversubscription",
    "DDP604": "shared-memory-exhausted",
    "DDP701": "unknown-variable",  # in no table and in no library, or spelt almost like one that is
    "DDP702": "renamed-variable",  # an old name that is still read
    "DDP703": "misread-value",  # raises, or is read as something else than it says
    "DDP704": "conflicting-variables",  # two settings of which one undoes the other
    "DDP705": "debug-setting-left-on",  # meant for a debugging session
    "DDP706": "leaked-launcher-variable",  # torchrun's, in a process that torchrun does not run
    "DDP707": "launchers-disagree",  # RANK and WORLD_SIZE against the launcher's own numbers
    "DDP708": "loopback-hostname",  # the host name resolves to 127.x
    "DDP709": "detail-debug-crash",  # TORCH_DISTRIBUTED_DEBUG=DETAIL on gloo
    "DDP710": "nccl-mismatch",  # several NCCL packages, or another one loaded than built against
    "DDP711": "low-limit",  # open files, locked memory, tasks
    "DDP712": "unusable-torch",  # installed, but importing it fails
    "DDP713": "hidden-devices",  # CUDA_VISIBLE_DEVICES hides more than it says
    "DDP714": "driver-too-old",  # for the CUDA that torch was built with
    "DDP715": "gpu-in-use",  # exclusive mode, or other processes compute on it
    "DDP716": "fabric-port-down",  # of an InfiniBand or RoCE device
    "DDP717": "unfit-checkpoint-folder",  # no replace, no fsync, no locks, or full
    "DDP718": "kernel-setting",  # that slows ranks, or keeps people from looking into them
    "DDP720": "wrong-result",
    "DDP721": "slow-link",
    "DDP722": "slow-rank",
    "DDP723": "peer-lost",
    "DDP724": "slower-than-before",
    "DDP725": "unhealthy-gpu",  # the driver or the fabric manager says so
    "DDP726": "torch-without-gpus",  # GPUs are here, and torch was built without
    "DDP719": "hosts-differ",  # in variables or hardware, by `env --compare`
}

_LONGEST_VALUE = 40


def finding(
    code: str,
    severity: Severity,
    cause: str,
    cure: str,
    *,
    ranks: Iterable[int] = (),
    notes: Iterable[str] = (),
    commands: Iterable[str] = (),
    certainty: Certainty = "proven",
    applicability: Literal["safe", "unsafe", "manual"] = "manual",
) -> Finding:
    """A finding about machines or processes; of `env`, no rank is to blame."""
    return Finding(
        code=code,
        title=TITLES[code],
        severity=severity,
        certainty=certainty,
        ranks=tuple(ranks),
        places=(),
        cause=cause,
        cure=Cure(text=cure, commands=tuple(commands), applicability=applicability),
        evidence=tuple(notes),
    )


def unset(*names: str) -> tuple[str, ...]:
    """The command that removes variables, fit to be pasted into a shell."""
    return (f"unset {shlex.join(names)}",)


def exported(name: str, value: str) -> str:
    """The command that sets a variable; zsh would take a bare `=x` for where a command lies."""
    bare = shlex.quote(value) == value
    return f"export {name}=" + (f"'{value}'" if bare and "=" in value else shlex.quote(value))


def taken_away(variable: SetVariable) -> tuple[str, ...]:
    """The command that removes a variable from where it is set."""
    if variable.file is None:
        return unset(variable.name)
    return (f"sed -i '/^{variable.name}=/d' {shlex.quote(variable.file)}",)


def origin(variable: SetVariable) -> tuple[str, ...]:
    """A note that says which file sets a variable that the environment does not."""
    if variable.file is None:
        return ()
    return (f"{variable.file} sets it: NCCL reads that where the environment says nothing",)


def setting(name: str, value: str) -> str:
    """NAME=value, for one line of a message."""
    shown = value if len(value) <= _LONGEST_VALUE else f"{value[: _LONGEST_VALUE - 1]}…"
    return f"{name}={shown}" if shown else f"{name}=''"

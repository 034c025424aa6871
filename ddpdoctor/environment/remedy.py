"""The commands that mend what `env` has found, for the user's own shell. Nothing here runs them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from ddpdoctor.catalog import Finding

Shell = Literal["sh", "fish", "csh"]

# What begins so is exact as it stands; all else names a thing that only the user knows.
_EXACT = (
    "unset ",
    "export ",
    "ulimit ",
    "sysctl ",
    "nvidia-smi -i ",
    "timedatectl ",
    "sed -i ",
    "ip link set lo ",
)
_PLACE_HOLDER = re.compile(r"\b[A-Z]{1,4}\b(?!=)|\.\.\.")
_NEEDS_ROOT = ("sysctl ", "nvidia-smi -i ", "timedatectl ", "ip link set lo ")


def shell_of(path: str | None) -> Shell:
    """The language of a login shell, from $SHELL."""
    name = PurePath(path or "sh").name
    return "fish" if name == "fish" else "csh" if name in ("csh", "tcsh") else "sh"


def script(findings: Sequence[Finding], shell: Shell) -> str:
    """Commands, each below a comment that says what for; what only a person can do is a comment."""
    lines = []
    for finding in findings:
        lines.append(f"# {finding.code} ({finding.severity}): {finding.cause}")
        exact = [one for one in finding.cure.commands if _is_exact(one)]
        lines += [line for one in exact for line in _translated(one, shell)]
        if not exact:
            lines.append(f"#   by hand: {finding.cure.text}")
    return "".join(f"{' '.join(line.split())}\n" for line in lines)


def _is_exact(command: str) -> bool:
    if command.startswith(("unset ", "export ")):
        return True
    return command.startswith(_EXACT) and not _PLACE_HOLDER.search(command)


def _translated(command: str, shell: Shell) -> Iterator[str]:
    if command.startswith(_NEEDS_ROOT):
        yield f"sudo {command}"
        return
    words = shlex.split(command)
    if shell == "sh" or words[0] not in _IN_OTHER_SHELLS[shell]:
        yield command
        return
    for word in words[1:]:
        yield _IN_OTHER_SHELLS[shell][words[0]](word)


def _setting(command: str, word: str) -> str:
    name, _, value = word.partition("=")
    return f"{command} {name} {shlex.quote(value)}"


_IN_OTHER_SHELLS: dict[str, dict[str, Callable[[str], str]]] = {
    "fish": {
        "unset": lambda name: f"set -e {name}",
        "export": lambda word: _setting("set -gx", word),
    },
    "csh": {
        "unset": lambda name: f"unsetenv {name}",
        "export": lambda word: _setting("setenv", word),
    },
}

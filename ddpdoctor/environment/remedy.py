"""The commands that mend what `env` has found, for the user's own shell. Nothing here runs them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath
from typing import Literal

from ddpdoctor.catalog import Finding

Shell = Literal["sh", "fish", "csh", "pwsh"]

_LANGUAGES: dict[str, Shell] = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh"), "sh"),
    **{"fish": "fish", "csh": "csh", "tcsh": "csh", "pwsh": "pwsh", "powershell": "pwsh"},
}

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


def shell_of(environ: Mapping[str, str], parent: str = "") -> Shell:
    """The language of the shell in which this was typed: `parent` is who started this process.

    Where that is no shell (uv, make, a debugger), PowerShell is known by the variable that it gives
    to all that it starts; else it is the login shell.
    """
    if parent in _LANGUAGES:
        return _LANGUAGES[parent]
    if "PSModulePath" in environ:
        return "pwsh"
    return _LANGUAGES.get(PurePath(environ.get("SHELL") or "sh").name, "sh")


def parent() -> str:
    """The name of the program that started this process; "" if it is not told."""
    with suppress(OSError):
        return Path(f"/proc/{os.getppid()}/comm").read_text(errors="replace").strip()
    return ""


def script(findings: Sequence[Finding], shell: Shell) -> str:
    """Commands, each below a comment that says what for; what only a person can do is a comment."""
    lines = []
    gone: set[str] = set()
    for finding in findings:
        lines.append(_comment(f"{finding.code} ({finding.severity}): {finding.cause}"))
        exact = [one for one in finding.cure.commands if _is_exact(one)]
        taken = {name for one in exact for name in _taken(one)}
        # What a graver finding takes away is not set again under another name.
        kept = [] if taken <= gone and taken else exact
        gone |= taken
        lines += [line for one in kept for line in _translated(one, shell)]
        if not exact:
            lines.append(_comment(f"by hand: {finding.cure.text}"))
    return "".join(f"{line}\n" for line in lines)


def _taken(command: str) -> list[str]:
    return shlex.split(command)[1:] if command.startswith("unset ") else []


def _comment(text: str) -> str:
    return f"# {' '.join(text.split())}"


def _is_exact(command: str) -> bool:
    if command.startswith(("unset ", "export ")):
        return True
    return command.startswith(_EXACT) and not _PLACE_HOLDER.search(command)


def _translated(command: str, shell: Shell) -> Iterator[str]:
    """The lines that do in that shell what the command does in sh."""
    words = shlex.split(command)
    in_words = _IN_OTHER_SHELLS.get(shell, {}).get(words[0])
    if in_words:
        yield from in_words(words[1:])
        return
    sudo = "sudo " * command.startswith(_NEEDS_ROOT)
    yield sudo + (command if shell == "sh" else " ".join(map(_QUOTE[shell], words)))


def _in_fish(word: str) -> str:
    # Between single quotes fish reads a backslash in front of a quote or of another one.
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return word if shlex.quote(word) == word else f"'{escaped}'"


def _in_csh(word: str) -> str:
    # History is expanded between single quotes too, and in scripts; =0 is a folder of the stack.
    quoted = f"'{word}'" if word.startswith("=") and shlex.quote(word) == word else None
    return (quoted or shlex.quote(word)).replace("!", "\\!")


def _in_pwsh(word: str) -> str:
    # The typographic quotes end a string as the plain one does, and each is doubled to be itself.
    # A comma outside of quotes makes a list, which a program gets as several words.
    plain = re.fullmatch(r"[A-Za-z0-9_/-][A-Za-z0-9_/.-]*", word) and not re.match(r"-.*\.", word)
    return word if plain else "'" + re.sub("(['\u2018-\u201b])", r"\1\1", word) + "'"


def _pwsh_assigned(words: list[str]) -> Iterator[str]:
    for word in words:
        name, _, value = word.partition("=")
        yield f"$env:{name} = '{_in_pwsh(f'={value}')[2:]}"


def _pwsh_taken_away(words: list[str]) -> Iterator[str]:
    for name in words:
        place = f"Env:{name}"
        # What is no name in a pattern would be read as one: an asterisk removes every variable.
        plain = re.fullmatch("[A-Za-z0-9_]+", name)
        yield f"Remove-Item {place if plain else f'-LiteralPath {_in_pwsh(place)}'}"


def _pwsh_limit(words: list[str]) -> Iterator[str]:
    yield _comment(f"pwsh has no limits: before you start it, ulimit {' '.join(words)}")


def _csh_limit(words: list[str]) -> Iterator[str]:
    resources = {"-n": "descriptors", "-f": "filesize", "-l": "memorylocked", "-u": "maxproc"}
    yield f"limit {resources[words[0]]} {words[1]}"


def _assigned(command: str, quoted: Callable[[str], str], words: list[str]) -> Iterator[str]:
    for word in words:
        name, _, value = word.partition("=")
        yield f"{command} {quoted(name)} {quoted(value)}"


def _taken_away(command: str, quoted: Callable[[str], str], words: list[str]) -> Iterator[str]:
    for name in words:
        yield f"{command} {quoted(name)}"


_QUOTE: dict[Shell, Callable[[str], str]] = {"fish": _in_fish, "csh": _in_csh, "pwsh": _in_pwsh}
_IN_OTHER_SHELLS: dict[Shell, dict[str, Callable[[list[str]], Iterator[str]]]] = {
    "fish": {
        "unset": partial(_taken_away, "set -e", _in_fish),
        "export": partial(_assigned, "set -gx", _in_fish),
    },
    "csh": {
        "unset": partial(_taken_away, "unsetenv", _in_csh),
        "export": partial(_assigned, "setenv", _in_csh),
        "ulimit": _csh_limit,
    },
    "pwsh": {
        "unset": _pwsh_taken_away,
        "export": _pwsh_assigned,
        "ulimit": _pwsh_limit,
    },
}

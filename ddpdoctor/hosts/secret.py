"""What strangers on the network lack, and all hosts of a job have, where there is such a thing."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ddpdoctor.environment.facts.folder import is_remote
from ddpdoctor.environment.facts.machine import Machine

_KEY = 32


def secret() -> str:
    """DDPDOCTOR_TOKEN; else a key in the home folder, if that is one that hosts share; else "".

    Whether it is shared shows in what is mounted there: hosts of one job see the same, so all have
    the key or none.
    """
    if said := os.environ.get("DDPDOCTOR_TOKEN"):
        return said
    try:
        home = Path.home()
        return key_in(home) if is_remote(Machine(os.environ), home) else ""
    except (OSError, RuntimeError, ValueError, IndexError):
        return ""


def key_in(home: Path) -> str:
    """The key that is kept there, made by whoever comes first. Raises OSError."""
    path = home / ".local" / "state" / "ddpdoctor" / "key"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"key.{os.uname().nodename}.{os.getpid()}.{os.urandom(4).hex()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(os.urandom(_KEY).hex())
        with contextlib.suppress(FileExistsError):  # another host's doctor was first: it is theirs
            os.link(draft, path)
        draft.unlink()
    return path.read_text()

"""What doctors send each other: JSON, packed, and sealed with a token that strangers lack."""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence import DAMAGED
from ddpdoctor.hosts.secret import secret

PROTOCOL = 3
"""Doctors of another one are told, and not listened to."""
MOST = 1 << 20
"""Bytes of a message, packed."""
_MOST_UNPACKED = 1 << 26
_SEAL = 16
_PORTS = range(20_000, 30_000)
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the doctors of one set of ranks meet, all by what the job itself says."""

    host: str
    """That of rank 0, as the ranks know it; "" where they meet in a file."""
    ports: tuple[int, ...]
    """The first that is free."""
    token: bytes

    @classmethod
    def of(cls, meeting: str, world_size: int, run: str) -> Meeting | None:
        """By where the ranks meet: host and port, or a file; None if that is not known.

        Without a `secret`, whoever knows the job's run id and port could reckon out the token.
        """
        host, _, port = meeting.rpartition(":")
        if not port.isdigit():
            host, port = "", meeting
        if not port:
            return None
        said = json.dumps([port, world_size, run, secret()]).encode()
        token = hashlib.sha256(b"ddpdoctor hosts" + said).digest()
        numbers = (int.from_bytes(token[2 * n : 2 * n + 2]) for n in range(_TRIES))
        return cls(host, tuple(_PORTS[number % len(_PORTS)] for number in numbers), token)

    @property
    def name(self) -> str:
        """Tells this meeting from others, and says nothing of the token."""
        return hashlib.sha256(self.token + b"name").hexdigest()[:16]

    @property
    def drawer(self) -> str:
        """Where messages lie in a store: those who lack the token do not know its name."""
        return hashlib.sha256(self.token + b"drawer").hexdigest()[:32]

    @property
    def greeting(self) -> str:
        """By which a doctor knows that it has come to the right place."""
        return f"ddpdoctor {PROTOCOL} {hashlib.sha256(self.token + b'greeting').hexdigest()}"


def sealed(token: bytes, content: dict[str, Any]) -> bytes:
    """A message, ready to be sent."""
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)
    return _seal(token, packed) + packed


def opened(token: bytes, message: bytes) -> dict[str, Any] | None:
    """What a message says; None if it is not of one of us, or too large."""
    seal, packed = message[:_SEAL], message[_SEAL:]
    if len(message) > MOST or not hmac.compare_digest(seal, _seal(token, packed)):
        return None
    try:
        unpacking = zlib.decompressobj()
        said = unpacking.decompress(packed, _MOST_UNPACKED)
        content = json.loads(said) if not unpacking.unconsumed_tail else None
    except (zlib.error, *DAMAGED):
        return None
    return content if isinstance(content, dict) else None


def _seal(token: bytes, packed: bytes) -> bytes:
    return hmac.digest(token, packed, "sha256")[:_SEAL]

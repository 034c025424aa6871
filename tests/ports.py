"""Ports for ranks to meet at."""

from __future__ import annotations

import random
import socket

_CLAIMS: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody else is given before the ranks, seconds later, listen there.

    Not by the kernel, which gives out higher ones to whoever asks for any, and not by this
    function in another worker: a name that lasts as long as this process claims it.
    """
    for port in random.sample(range(15_000, 29_000), 1000):
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                claim.bind(f"\0ddpdoctor-port-{port}")
                probe.bind(("", port))
            except OSError:
                claim.close()
                continue
        _CLAIMS.append(claim)
        return port
    raise OSError("no port is free")

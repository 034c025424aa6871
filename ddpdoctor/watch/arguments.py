"""Records why argparse ends a rank: it prints, and leaves by SystemExit, which nothing records."""

from __future__ import annotations

import argparse
import functools
from typing import Any, NoReturn

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame


def install(log: Log) -> None:
    """Wrap `ArgumentParser.error` of this process."""
    original = argparse.ArgumentParser.error

    @functools.wraps(original)
    def error(parser: argparse.ArgumentParser, message: str) -> NoReturn:
        _note(log, message)
        original(parser, message)

    argparse.ArgumentParser.error = error  # type: ignore[assignment, method-assign]


@harmless
def _note(log: Log, message: str) -> None:
    place = users_frame()
    exception: dict[str, Any] = {
        "type": "SystemExit",
        "message": f"argparse: {message}",
        "frames": [place] if place else [],
        "place": place,
        "cause": None,
    }
    log.write("exception", exception=exception)

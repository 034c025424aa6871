"""The program: what the command `ddpdoctor` starts, and `python -m ddpdoctor` under a launcher."""

from __future__ import annotations

import gc
import os
import signal  # and nothing else: a Ctrl-C before `main` is Python's own, a traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit. Ctrl-C is one line, also while it is still being imported."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        # Not by an exception, which what is being imported may turn into one of its own.
        signal.signal(signal.SIGINT, _leave)
    from ddpdoctor import cli, interruption

    try:
        if ours:
            interruption.heed()
        cli.main()
    except KeyboardInterrupt:
        _leave()
    except Exception:
        if interruption.was_noted():
            _leave()
        raise
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # there is nothing left to tell
        gc.freeze()  # else all that is left, as lint's syntax trees, is walked before the end


def _leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> NoReturn:
    try:  # noqa: SIM105
        os.write(2, b"ddpdoctor: interrupted\n")
    except OSError:
        pass
    os._exit(128 + number)


if __name__ == "__main__":
    main()

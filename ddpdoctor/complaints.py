"""How the command line fails: one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from ddpdoctor import interruption
from ddpdoctor.report import output

USAGE = 2
"""A usage error, or a fault of ours."""
INTERRUPTED = 128 + signal.SIGINT
CUT_SHORT = 128 + signal.SIGPIPE
"""What the shell says of any program that `| head` cut short."""

# UsageError, the base of what is wrong on a command line. Found by way of typer, which has a click
# of its own in some versions and shares the installed one in others.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Complaint(Exception):
    """What the user can cure, in one line. `of_this_rank` is what no other rank tells."""

    def __init__(self, text: str, *, code: int = USAGE, of_this_rank: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.of_this_rank = of_this_rank


def guarded(perform: Callable[[], None], *, silent: bool = False) -> int:
    """Do something for the command line and return its exit code.

    A `silent` rank leaves it to rank 0 to tell what all of them found.
    """
    try:
        perform()
    except typer.Exit as end:
        return end.exit_code
    except _UsageError as error:
        said: str = error.format_message()  # type: ignore[attr-defined]
        return _complain(said.replace(": Value error, ", ": ", 1), silent)
    except Complaint as error:
        return _complain(str(error), silent and not error.of_this_rank, error.code)
    except output.OutputError as error:
        return _complain(str(error), silent)
    except KeyboardInterrupt:
        return _interrupted(silent)
    except BrokenPipeError:
        output.silence(sys.stdout)
        return CUT_SHORT
    except Exception as error:
        return _interrupted(silent) if interruption.was_noted() else _confess(error)
    return 0


def _interrupted(silent: bool) -> int:
    if not silent:
        print("ddpdoctor: interrupted", file=sys.stderr)  # at once: nothing is imported for it
    return INTERRUPTED


@contextmanager
def complaining_about(*errors: type[Exception]) -> Iterator[None]:
    """Turn these errors, whose text is for the user, into complaints."""
    try:
        yield
    except errors as error:
        raise Complaint(str(error)) from error


@contextmanager
def telling_of_faults() -> Iterator[None]:
    """Tell what goes wrong here in one line, and let it decide nothing."""
    try:
        yield
    except output.OutputError as error:
        _say(str(error))
    except Exception as error:
        _confess(error)


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP leave every `with` block, as Ctrl-C does: nothing stays behind."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    asking = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    heed = interruption.never_forgotten(leave)
    before = {number: signal.signal(number, heed) for number in asking}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def need(extra: str, *modules: str) -> None:
    """Complain of modules that are not installed, and say which extra has them."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise Complaint(
            f"this command needs {', '.join(missing)}: pip install 'ddpdoctor[{extra}]'"
        )


def is_main() -> bool:
    """Whether this process is rank 0, or no rank at all."""
    return os.environ.get("RANK", "0") == "0"


def _complain(message: str, silent: bool, code: int = USAGE) -> int:
    if silent:
        # The first rank to end has the others ended: rank 0 must have told by then.
        time.sleep(5)
    else:
        _say(message)
    return code


def _confess(error: Exception) -> int:
    if os.environ.get("DDPDOCTOR_TRACEBACK"):
        traceback.print_exception(error)
    rank = f"rank {os.environ['RANK']}: " if "RANK" in os.environ else ""
    _say(
        f"{rank}a fault of ours, {type(error).__name__}: {error}. Please report it with the "
        "output of `ddpdoctor env` and of this command under DDPDOCTOR_TRACEBACK=1."
    )
    return USAGE


def _say(message: str) -> None:
    from ddpdoctor.environment.redaction import Redactor  # only what goes wrong needs it

    told = Redactor(os.environ).text(" ".join(message.split()))
    print(f"ddpdoctor: {told}", file=sys.stderr)

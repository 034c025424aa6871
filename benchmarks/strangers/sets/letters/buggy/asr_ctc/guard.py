import functools
import logging

log = logging.getLogger("asr")


def tolerate(*kinds):
    """Turns the given exceptions of a function into a log line and a None."""

    def wrap(fn):
        @functools.wraps(fn)
        def inner(*args, **kw):
            try:
                return fn(*args, **kw)
            except kinds as exc:
                log.warning("%s: %s", fn.__name__, exc)
                return None

        return inner

    return wrap

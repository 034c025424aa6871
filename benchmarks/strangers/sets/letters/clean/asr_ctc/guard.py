import functools
import logging

import torch
import torch.distributed as dist

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


def everybody(ok):
    flag = torch.tensor([1 if ok else 0])
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())

"""Open files: enough of them for the doctor, and a word where the job has too few."""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import partial

from ddpdoctor.catalog import Finding

_DOCTOR = 256
"""Descriptors of the doctor, which has one for each process that it watches, beside its own."""


def take_enough() -> Callable[[], None] | None:
    """Allow this process more where few are allowed; what gives a child no more than before."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = _DOCTOR if most == resource.RLIM_INFINITY else min(_DOCTOR, most)
    if few == resource.RLIM_INFINITY or few >= enough:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))
    return partial(resource.setrlimit, resource.RLIMIT_NOFILE, (few, most))


def too_few() -> Finding | None:
    """What a job that inherits this process's limit will suffer of it."""
    few, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if few == resource.RLIM_INFINITY or few >= _DOCTOR:
        return None
    # Late: hardly anybody needs them.
    from ddpdoctor.environment.checks.host import too_few_files
    from ddpdoctor.launch.capacity import DESCRIPTORS

    if few >= DESCRIPTORS:
        return None
    return too_few_files(few, DESCRIPTORS).model_copy(update={"has_lasted": True})

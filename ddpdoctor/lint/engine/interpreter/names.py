"""What a name suggests where nothing else is known: a rank, the main process. Never certain."""

from __future__ import annotations

import re

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.values import (
    BY_RANK_LIKELY,
    IS_LOCAL_MAIN,
    IS_MAIN,
    LOCAL_RANK,
    RANK,
    Place,
    Value,
    Why,
)

RANK_NAME = re.compile(
    r"^_?(local|global|world|my|this|dist|ddp|process|proc|worker|node|gpu)?_?rank(_?id)?$", re.I
)
MAIN_NAME = re.compile(
    r"^_?is_?(\w+_)?(main|master|primary|chief)(_?(process|proc|rank|node|worker|gpu))?$"
    r"|^_?is_(\w+_)?(rank_?(zero|0)|(global|local|world)_zero|zero_rank|rank_?zero_process)$"
    r"|^_?(main|master|primary|chief)_?(process|proc|rank)$|^_?rank_?(zero|0)$|^_?is_?rank_?0$",
    re.I,
)
RANK_CALL = re.compile(r"^get_(local_|global_|world_|node_local_|dist_)?rank$")


def hinted(vm: Machine, value: Value, name: str) -> Value:
    """An unknown value as its name suggests."""
    if RANK_NAME.match(name):
        table = LOCAL_RANK if "local" in name.lower() or "gpu" in name.lower() else RANK
    elif MAIN_NAME.match(name):
        table = IS_LOCAL_MAIN if "local" in name.lower() else IS_MAIN
    else:
        return value
    line = getattr(vm.frame.call, "lineno", 1) if vm.frames else 1
    place = Place(vm.path if vm.frames else "", line)
    return Value(table, BY_RANK_LIKELY, Why(f"`{name}` is the rank by its name", place))

"""Notes what is done to a model after it was wrapped: what is added, unfrozen, or put to rest."""

from __future__ import annotations

import functools
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from ddpdoctor.watch.aside import is_compiling, skip
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.identity import ByIdentity
from ddpdoctor.watch.passes import Passes
from ddpdoctor.watch.places import Frame, is_users, outwards, users_frame

_UNFREEZES = re.compile(
    r"\.requires_grad(\s*=\s*True\b|_\(\s*(True\b|\)|requires_grad\s*=\s*True))"
)
_FREEZES = re.compile(
    r"\.requires_grad(\s*=\s*(?!True\b)[^=\s]|_\(\s*(requires_grad\s*=\s*)?(?!True\b)[^)\s])"
)
"""What may freeze: a value that is computed may be False."""


def listen(wrapped: ByIdentity[Passes]) -> None:
    """Have torch tell of modules and parameters that are registered, from the first wrap on."""
    from torch.nn.modules import module

    @harmless
    def registered(holder: Any, name: str, added: Any) -> None:
        for passes in wrapped.values():
            is_news = added is not None and "added" not in passes.places
            if is_news and id(holder) in passes.modules and (place := users_frame()):
                passes.places["added"] = place

    module.register_module_module_registration_hook(registered)
    module.register_module_parameter_registration_hook(registered)


@harmless
def listen_to_conversions(wrapped: ByIdentity[Passes]) -> None:
    """Notice modules that change the type or device of their parameters after the wrap.

    The parameters stay the same objects; the hooks by which DDP learns of their gradients do not
    survive a change of type.
    """
    from torch.nn import Module

    module_type: Any = Module
    original = module_type._apply

    def kind(module: Any) -> Any:
        first = next(module.parameters(), None)
        return None if first is None else (first.dtype, first.device)

    @functools.wraps(original)
    def apply(module: Any, *args: Any, **kwargs: Any) -> Any:
        of = [each for each in wrapped.values() if id(module) in each.modules]
        before = kind(module) if of else None
        result = original(module, *args, **kwargs)
        if of and kind(module) != before and (place := users_frame()) is not None:
            for passes in of:
                passes.places.setdefault("converted", place)
        return result

    module_type._apply = apply


@harmless
def listen_to_resting(wrapped: ByIdentity[Passes]) -> None:
    """Note the line that put a model into evaluation mode the last time."""
    from torch.nn import Module

    module_type: Any = Module
    original = module_type.eval

    @harmless
    def note(module: Any) -> None:
        for passes in wrapped.values():
            if id(module) in passes.modules and (place := users_frame()) is not None:
                passes.places["rest"] = place

    @functools.wraps(original)
    def evaluate(module: Any) -> Any:
        result = original(module)
        if not is_compiling():
            note(module)
        return result

    skip(evaluate)
    module_type.eval = evaluate


@harmless
def look_for_unfreezing(passes: Passes) -> None:
    """Setting `requires_grad` calls nothing: the line that does it is looked for in the source.

    One of several can only be told where it is the one of what is being run: the rest may never be.
    """
    if "unfrozen" in passes.places or "added" in passes.places:
        return
    running = [f.f_code for f in outwards(sys._getframe(1)) if is_users(f.f_code)]
    if (
        line := _one(_UNFREEZES, _beside({code.co_filename for code in running}), running)
    ) is not None:
        passes.places["unfrozen"] = line


def freezing_line(file: str, error: BaseException) -> Frame | None:
    """The line that freezes parameters, in this file and beside it, as far as one can be told."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return _one(_FREEZES, _beside({file}), [f.f_code for f in frames if is_users(f.f_code)])


def _one(pattern: re.Pattern[str], files: set[str], running: list[CodeType]) -> Frame | None:
    """The only such line; of several, the only one of what is being run."""
    found = [*_lines(pattern, files)]
    lines = {(code.co_filename, number) for code in running for _, _, number in code.co_lines()}
    found = [each for each in found if each[:2] in lines] or found
    return found[0] if len(found) == 1 else None


def _lines(pattern: re.Pattern[str], files: set[str]) -> Iterator[Frame]:
    for file in sorted(files):
        for number, line in enumerate(linecache.getlines(file), 1):
            if pattern.search(line):
                yield file, number, ""


def _beside(files: set[str]) -> set[str]:
    """They, and the modules of their folders."""
    folders = {str(Path(file).parent) for file in files}
    modules = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
    return files | {file for file in modules if str(Path(file).parent) in folders}

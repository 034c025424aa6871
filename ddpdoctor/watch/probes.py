"""Looks for the user's line after a suspicion, for the length of one window.

A step on gradients that no forward pass of the wrapper preceded, or that no reduction followed,
says that something went past the wrapper, not where. So the calls that can do that are listened to
until the next step; if that is right, which takes turns with wrong ones, until a later one.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from types import CodeType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.passes import LONE, Passes
from ddpdoctor.watch.places import Frame, as_frame, is_users, outwards, users_frame
from ddpdoctor.watch.replacing import Replaced

_PAST = ("bypass", "bypass from")
"""The line that goes past the wrapper, and the one that calls it."""
_WINDOWS = 8
"""In so many windows the line is looked for, while those that are listened to have other passes."""


@harmless
def after(passes: Passes, window: str, *, again: bool = True) -> None:
    """A window has ended: end its probe, and begin one for the next if there is need.

    `again`: one without a pass is a reason to look for as many more.
    """
    if passes.probe is not None:
        passes.probe()
        passes.probe = None
    is_sought = passes.past_for > 0
    if is_sought and window:
        for name in _PAST:  # the wrapper was called too: it may be beside its training
            passes.places.pop(name, None)
        passes.past_for -= 1
    elif is_sought and "bypass" in passes.places:
        passes.past_for = 0
    listen = None
    if again and not window and "bypass" not in passes.places:
        passes.past_for = _WINDOWS
    if passes.past_for:
        listen = _listen_to_modules
    elif passes.sampling and window.endswith(LONE) and "grad" not in passes.places:
        listen = _listen_to_grad
    replaced = Replaced()
    if listen is not None and (wrapper := passes.wrapper()) is not None and replaced.begin():
        passes.probe = replaced.undo
        weakref.finalize(wrapper, replaced.undo).atexit = False
        listen(passes, replaced)


def _listen_to_modules(passes: Passes, replaced: Replaced) -> None:
    """The first call of one of the wrapped modules that builds a graph outside of the wrapper."""
    from torch.nn.modules.module import register_module_forward_pre_hook

    wrapper = passes.wrapper()
    if wrapper is None:
        return
    modules = {id(module) for module in wrapper.module.modules()}
    methods = {code for module in wrapper.module.modules() for code in _methods(type(module))}

    @harmless
    def before_call(module: Any, inputs: Any) -> None:
        import torch

        if id(module) not in modules or passes.inside or not torch.is_grad_enabled():
            return
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return  # it is not trained by this
        if "bypass" not in passes.places and (places := _callers(methods)):
            passes.places.update(zip(_PAST, places, strict=False))
            replaced.undo()

    replaced.hold(register_module_forward_pre_hook(before_call))


def _callers(methods: set[CodeType]) -> list[Frame]:
    """The innermost of the user's frames that are no methods of the model itself."""
    frames = (f for f in outwards(sys._getframe(1)) if is_users(f.f_code))
    others = (as_frame(f) for f in frames if f.f_code not in methods)
    return list(itertools.islice(others, len(_PAST)))


def _methods(cls: type) -> list[CodeType]:
    functions = [value for base in cls.__mro__ for value in vars(base).values()]
    return [f.__code__ for f in functions if hasattr(f, "__code__")]


def _listen_to_grad(passes: Passes, replaced: Replaced) -> None:
    """The next call of torch.autograd.grad."""
    from torch import autograd

    @harmless
    def note() -> None:
        if (place := users_frame(sys._getframe(1))) is not None:
            passes.places["grad"] = place

    def make(original: Any) -> Any:
        def grad(*args: Any, **kwargs: Any) -> Any:
            note()
            return original(*args, **kwargs)

        return grad

    replaced.put(autograd, "grad", make)

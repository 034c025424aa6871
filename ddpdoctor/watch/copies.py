"""Records copies of a model: one made before the wrap is not what DDP then makes equal.

A copy of a module is seen when it is made. One of its tensors alone (an average that is kept in a
dictionary) calls nothing that can be watched: looked for are those that hold what a parameter held
before the wrap, and were not brought up to date before the first step. What they hold is told once
it has changed, as an average does. And so is what a copy of a module holds, where the module that
is wrapped is another copy of the same one, which nobody trains.
"""

from __future__ import annotations

import copy
import functools
import gc
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddpdoctor.watch.aside import is_compiling
from ddpdoctor.watch.digests import Budget, digests, head, size
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, as_frame, is_users, outwards, users_frame

_PLACES = 3
_MOST, _SMALL = 2048, 8
"""So many parameters are compared, of so many elements or more."""
_TOLD = 256


@dataclass
class _Copy:
    copy: weakref.ref[Any]
    source: weakref.ref[Any]
    places: list[Frame]
    wrapper: weakref.ref[Any] | None = None


@dataclass
class _Kept:
    """Tensors that hold what a parameter held before the wrap, each with the parameter's name."""

    wrapper: weakref.ref[Any]
    tensors: list[tuple[str, weakref.ref[Any]]]
    was: dict[str, str]
    """Digests of the parameters before the wrap."""
    place: Frame | None
    has_begun: bool = False
    """A step was taken since."""
    twin: int = 0
    """Of a copy of what the wrapped module is a copy of, or of itself: its number, from 1."""
    made: weakref.ref[Any] | None = None
    """That copy."""
    of_model: bool = False


class Copies:
    """The copies of modules that were made so far, and what they are copies of."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._made: list[_Copy] = []
        self._again: list[tuple[int, _Copy]] = []
        """Those that were written once, by number."""
        self._kept: list[_Kept] = []
        self._twins: list[weakref.ref[Any]] = []
        self._before: dict[str, str] = {}
        self._updates: weakref.WeakKeyDictionary[Any, tuple[int, Frame | None]] = (
            weakref.WeakKeyDictionary()
        )
        """Of copies that an AveragedModel holds."""

    @harmless
    def updated(self, average: Any) -> None:
        """An AveragedModel is brought up to date."""
        so_often, place = self._updates.get(average.module, (0, None))
        self._updates[average.module] = so_often + 1, place or users_frame()

    @harmless
    def made(self, source: Any, result: Any) -> None:
        """A module has been copied."""
        places = [as_frame(f) for f in outwards(sys._getframe(1)) if is_users(f.f_code)]
        made = _Copy(weakref.ref(result), weakref.ref(source), places[:_PLACES])
        alive = [each for each in self._made if each.copy() is not None]
        self._made = [*alive[-64:], made]

    @harmless
    def wrapping(self, module: Any) -> None:
        """A DDP is about to be built, which may replace what the module holds."""
        self._before = {}
        named = list(module.named_parameters())[:_MOST]
        self._before = self._digests({name: p for name, p in named if p.numel() >= _SMALL})

    @harmless
    def wrapped(self, wrapper: Any) -> None:
        """It was built: the copies of its module that are there already are what matters."""
        for each in self._made:
            if each.wrapper is None and each.source() is wrapper.module:
                each.wrapper = weakref.ref(wrapper)
        self._kept = [each for each in self._kept if each.wrapper() is not None]
        was, self._before = self._before, {}
        if was and (tensors := self._equal(wrapper.module, was)):
            self._kept.append(_Kept(weakref.ref(wrapper), tensors, was, users_frame()))

    @harmless
    def write(
        self, log: Log, wrapper: Any, number: int, step: int, model: Mapping[str, str]
    ) -> None:
        """Write, twice, the digests of the copies that were made before this wrapper.

        `model` are those of what it holds now.
        """
        mine = [each for each in self._made if each.wrapper and each.wrapper() is wrapper]
        self._made = [each for each in self._made if each not in mine]
        before = [each for each in self._again if each[1].wrapper and each[1].wrapper() is wrapper]
        self._again = [each for each in self._again if each not in before] + [*enumerate(mine)]
        for again, of in ((True, before), (False, enumerate(mine))):
            for of_copies, each in of:
                if (made := each.copy()) is not None:
                    log.write(
                        "copy",
                        wrapper=number,
                        places=each.places,
                        parameters=digests(dict(made.named_parameters())),
                        number=of_copies,
                        again=again,
                    )
        self._begin_with_twins(wrapper)
        for kept in [each for each in self._kept if each.wrapper() is wrapper]:
            self._follow(log, number, kept, step, model)

    def _begin_with_twins(self, wrapper: Any) -> None:
        """Follow, from now on, the copies of the module that the wrapped one is a copy of.

        And those of itself: of these `_made` has only what was made after the wrap.
        """
        of = [each.source() for each in self._made if each.copy() is wrapper.module]
        for each in self._made:
            made, source = each.copy(), each.source()
            of_model = source is wrapper or source is wrapper.module
            is_twin = of[:1] == [source] != [None] and made is not wrapper.module
            if made is None or not (is_twin or of_model):
                continue
            if any(made is twin() for twin in self._twins):
                continue
            parameters = dict(made.named_parameters())
            if was := self._digests(parameters):
                self._twins.append(each.copy)
                tensors = [(name, weakref.ref(held)) for name, held in parameters.items()]
                kept = _Kept(weakref.ref(wrapper), tensors, was, next(iter(each.places), None))
                kept.has_begun, kept.twin = True, len(self._twins)
                kept.made, kept.of_model = each.copy, of_model
                self._kept.append(kept)

    def _follow(
        self, log: Log, number: int, kept: _Kept, step: int, model: Mapping[str, str]
    ) -> None:
        """Before the first step they must be as they were; then write what they have become."""
        alive = [(name, of, tensor) for name, of in kept.tensors if (tensor := of()) is not None]
        found = self._digests({str(n): tensor for n, (_, _, tensor) in enumerate(alive)})
        if not found:
            return
        now = [(name, of, found.get(str(n))) for n, (name, of, _) in enumerate(alive)]
        if not kept.has_begun:
            kept.has_begun = True
            kept.tensors = [(name, of) for name, of, digest in now if digest == kept.was[name]]
            return
        changed: dict[str, str] = {}
        for name, _, digest in now:
            has_own = digest is not None and digest not in (kept.was[name], model.get(name))
            if digest is not None and has_own and len(changed) < _TOLD:
                changed[name] = "" if name in changed else digest
        # Of several of one name it is not known which is which on another rank.
        alone = {name: digest for name, digest in changed.items() if digest}
        if alone:
            was = {name: kept.was[name] for name in alone}
            made = kept.made() if kept.made is not None else None
            updates, updated = self._updates.get(made, (0, None)) if made is not None else (0, None)
            log.write(
                "kept",
                wrapper=number,
                step=step,
                was=was,
                now=alone,
                place=kept.place,
                twin=kept.twin,
                of_model=kept.of_model,
                updates=updates,
                changed_at=updated,
            )

    def _equal(self, module: Any, was: dict[str, str]) -> list[tuple[str, weakref.ref[Any]]]:
        """Tensors of the process that hold what a parameter of this shape held.

        Those of one number alone say nothing: many are zeros.
        """
        import torch

        wanted: dict[Any, list[str]] = {}
        for name, parameter in module.named_parameters():
            if name in was:
                wanted.setdefault((parameter.shape, parameter.dtype), []).append(name)
        own = {parameter.data_ptr() for parameter in module.parameters()}
        tensors = [
            each
            for each in gc.get_objects()
            if type(each) is torch.Tensor and (each.shape, each.dtype) in wanted
            if each.layout is torch.strided and each.data_ptr() not in own
        ]
        found = self._digests({str(n): tensor for n, tensor in enumerate(tensors)})
        return [
            (name, weakref.ref(tensor))
            for n, tensor in enumerate(tensors)
            for name in wanted[tensor.shape, tensor.dtype]
            if was[name] == found.get(str(n)) and _varies(head(tensor))
        ]

    def _digests(self, tensors: dict[str, Any]) -> dict[str, str]:
        """Their digests; none where they would read too much."""
        return digests(tensors) if self._budget.take(size(tensors)) else {}


def _varies(tensor: Any) -> bool:
    return bool((tensor != tensor.reshape(-1)[0]).any())


def install(budget: Budget) -> Copies:
    """Listen to copies of modules."""
    from torch import nn
    from torch.optim import swa_utils

    copies = Copies(budget)
    original = copy.deepcopy

    @functools.wraps(original)
    def deepcopy(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(x, *args, **kwargs)
        if isinstance(x, nn.Module) and not is_compiling():
            copies.made(x, result)
        return result

    copy.deepcopy = deepcopy
    swa_utils.deepcopy = deepcopy  # type: ignore[attr-defined]
    update = swa_utils.AveragedModel.update_parameters

    @functools.wraps(update)
    def update_parameters(average: Any, *args: Any, **kwargs: Any) -> Any:
        copies.updated(average)
        return update(average, *args, **kwargs)

    swa_utils.AveragedModel.update_parameters = update_parameters  # type: ignore[assignment]
    return copies

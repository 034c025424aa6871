"""Records each load_state_dict: what it was of, what it brought, and whether the keys fitted."""

from __future__ import annotations

import functools
import itertools
import sys
import zlib
from typing import Any

from ddpdoctor.watch.digests import digests, is_capturing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_LIMIT = 256
_COMPARED = 10_000
_KEYS = 512
_DIGESTED, _ELEMENTS = 64, 64
"""Of about so many tensors, so many elements are told apart."""


def install(log: Log) -> None:
    """Wrap load_state_dict of Module and Optimizer."""
    from torch.nn import Module
    from torch.optim import Optimizer

    written = itertools.count()
    note = harmless(functools.partial(_note, log))

    def around(cls: Any) -> None:
        original = cls.load_state_dict

        @functools.wraps(original)
        def load(loaded: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            if next(written) >= _LIMIT:
                return original(loaded, state_dict, *args, **kwargs)
            before = _own(log, loaded)
            result = original(loaded, state_dict, *args, **kwargs)
            strict = kwargs.get("strict", args[0] if args else True)
            note(loaded, state_dict, strict, result, before)
            return result

        cls.load_state_dict = load

    around(Module)
    around(Optimizer)


def _note(log: Log, loaded: Any, state_dict: Any, strict: Any, result: Any, before: Any) -> None:
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import Optimizer

    missing = list(getattr(result, "missing_keys", ()))[:_COMPARED]
    unexpected = list(getattr(result, "unexpected_keys", ()))[:_COMPARED]
    kind = "wrapper" if isinstance(loaded, DistributedDataParallel) else "module"
    log.write(
        "state-load",
        of="optimizer" if isinstance(loaded, Optimizer) else kind,
        name=type(loaded).__qualname__,
        strict=bool(strict),
        keys=0 if isinstance(loaded, Optimizer) else sum(1 for _ in loaded.parameters()),
        missing=len(missing),
        unexpected=len(unexpected),
        prefixed=_differ_by_prefix(missing, unexpected),
        cut=_cut(missing, unexpected),
        place=users_frame(),
        way=log.way(sys._getframe(1)),
        content=_content(state_dict),
        wrapper=_wrapper(log, loaded),
        changed=before is not None and before != _own(log, loaded),
        step=log.steps,
    )


def _wrapper(log: Log, loaded: Any) -> int | None:
    """The number of the DDP that this is, or is in."""
    for number, reference in enumerate(log.wrappers):
        wrapper = reference()
        if wrapper is not None and (loaded is wrapper or loaded is wrapper.module):
            return number
    return None


@harmless
def _own(log: Log, loaded: Any) -> str | None:
    """A digest of what a module that DDP holds has in it."""
    return _content(dict(loaded.named_parameters())) if _wrapper(log, loaded) is not None else None


@harmless
def _content(state_dict: Any) -> str:
    """A digest of what is loaded; "" of an optimizer's state, which ranks may share out."""
    import torch

    named = list(state_dict.items())
    tensors = {
        name: value.detach().reshape(-1)[:_ELEMENTS]
        for name, value in named[:: max(1, len(named) // _DIGESTED)]
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.is_contiguous()
    }
    if not tensors or is_capturing(tensors.values()):
        return ""
    found = ",".join(digests(tensors).values())
    return f"{zlib.crc32(found.encode()):x}"


def _differ_by_prefix(missing: list[str], unexpected: list[str]) -> bool:
    """Whether "module." before the keys of one side gives keys of the other."""
    wanted, given = set(missing), set(unexpected)
    return any(f"module.{key}" in given for key in wanted) or any(
        f"module.{key}" in wanted for key in given
    )


def _cut(missing: list[str], unexpected: list[str]) -> list[str]:
    """Of keys that are left over, one that is the end of a missing one, and that one.

    Only if each that is left over is such an end, of another key, and that one lacks a part of a
    name: who leaves out whole names may mean another part of the model.
    """
    found = [next((m for m in missing if m.endswith(key)), "") for key in unexpected[:_KEYS]]
    if len(unexpected) > _KEYS or not found[1:] or not all(found) or len({*found}) < len(found):
        return []
    pairs = zip(unexpected, found, strict=True)
    return next(([key, m] for key, m in pairs if m.removesuffix(key)[-1:] not in ("", ".")), [])

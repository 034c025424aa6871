"""Records DistributedDataParallel wrappers: parameters by name, and those without gradient.

DDP names unused parameters by index. Which names these are, and whether any method of the model
ever mentions their module, can only be said from inside the rank.
"""

from __future__ import annotations

import dis
import functools
import inspect
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import zip_longest
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ddpdoctor.watch import layout, numbered
from ddpdoctor.watch.changes import freezing_line
from ddpdoctor.watch.exceptions import passing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, is_users, users_frame
from ddpdoctor.watch.training import install as install_training

_UNUSED = re.compile(r"did not receive grad for rank \d+: (\d[\d ]*)")


def install(log: Log) -> Callable[[BaseException], None]:
    """Wrap the construction of DDP and listen to optimizer steps.

    Returns what is to be called with the exception that ends the rank, before it is written.
    """
    from torch.nn import parallel

    alive = log.wrappers
    built_of: list[_Built] = []
    wrapper_type: Any = parallel.DistributedDataParallel
    original = wrapper_type.__init__

    @functools.wraps(original)
    def construct(wrapper: Any, *args: Any, **kwargs: Any) -> None:
        log.trainer = threading.get_ident()
        given = kwargs.get("module", args[0] if args else None)
        laid_out = layout.facts(given)
        wrapping(given)
        try:
            original(wrapper, *args, **kwargs)
        except Exception as error:
            passing(log, error, "DDP")
            raise
        _note_wrapper(log, alive, built_of, wrapper)
        log.write("layout", wrapper=len(alive) - 1, **(laid_out or {}))
        log.rows |= (rows := numbered.rows(given) or {})
        if found := numbered.in_frames(rows):
            log.write("numbered", place=users_frame(), found=found)
        built(wrapper)

    wrapper_type.__init__ = construct
    wrapping, built = install_training(log, functools.partial(_census, log, alive))

    def before_exception(error: BaseException) -> None:
        if match := _UNUSED.search(str(error)):
            _note_unused(log, alive, built_of, [int(index) for index in match[1].split()], error)

    return before_exception


@harmless
def _note_wrapper(
    log: Log, alive: list[weakref.ref[Any]], built_of: list[_Built], wrapper: Any
) -> None:
    import torch.distributed as dist

    place, managed = users_frame(), _managed(wrapper)
    log.write(
        "wrapper",
        place=place,
        parameters=[name for name, _ in managed],
        find_unused=wrapper.find_unused_parameters,
        static_graph=wrapper.static_graph,
        ranks=dist.get_process_group_ranks(wrapper.process_group),
        sizes=[p.numel() for _, p in managed],
    )
    built_of.append(_Built([name for name, _ in managed], place[0] if place is not None else ""))
    alive.append(weakref.ref(wrapper))


class _Built(NamedTuple):
    """What DDP's indices stand for, whatever is frozen or unfrozen later. Words alone."""

    parameters: list[str]
    file: str
    """In which it was wrapped."""


def _managed(wrapper: Any) -> list[tuple[str, Any]]:
    """Name and parameter in the order of DDP's own indices."""
    names = {id(parameter): name for name, parameter in wrapper.module.named_parameters()}
    managed = (p for p in wrapper._module_parameters if p.requires_grad)
    return [(names[id(p)], p) for p in managed if id(p) in names]


@harmless
def _census(log: Log, alive: list[weakref.ref[Any]], optimizer: Any) -> None:
    """Write which of the parameters that were stepped have no gradient, by wrapper."""
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for number, reference in enumerate(alive):
        wrapper = reference()
        if wrapper is None:
            continue
        without = [n for n, p in _managed(wrapper) if p.grad is None and id(p) in stepped]
        if without:
            _write(log, number, wrapper, without)


@harmless
def _note_unused(
    log: Log,
    alive: list[weakref.ref[Any]],
    built_of: list[_Built],
    indices: list[int],
    error: BaseException,
) -> None:
    """Write what the indices of DDP's message stand for: those of the latest wrapper they fit."""
    for number, reference in reversed(list(enumerate(alive))):
        wrapper, built = reference(), built_of[number]
        if wrapper is None or max(indices) >= len(built.parameters):
            continue
        names = [built.parameters[index] for index in indices]
        asleep = {name for name, p in wrapper.module.named_parameters() if not p.requires_grad}
        frozen = [name for name in names if name in asleep]
        used = [name for name in names if name not in asleep]
        line = freezing_line(built.file, error) if frozen else None
        freezes = [line] if line is not None else []
        more = {"uses": _uses(wrapper.module, used), "frozen": frozen, "freezes": freezes}
        _write(log, number, wrapper, used, more)
        return


def _write(
    log: Log,
    number: int,
    wrapper: Any,
    without_gradient: list[str],
    of_the_reducer: dict[str, Any] | None = None,
) -> None:
    dead = {n: holder for n in without_gradient if (holder := _dead(wrapper.module, n))}
    more = of_the_reducer or {}
    log.write(
        "gradients",
        wrapper=number,
        without_gradient=[*without_gradient, *more.get("frozen", ())],
        unreferenced=list(dead),
        registered=[place for holder in dead.values() if (place := _registration(*holder))],
        **more,
    )


def _dead(root: Any, parameter: str) -> tuple[Any, str] | None:
    """The module, and the name of its child, that the code which holds it never names; or None.

    "blocks.0.lemb.weight" is dead if no method of the block's class reads `self.lemb`, and no other
    class of the model reads `.lemb` of something. Modules held by torch's own containers count as
    named. A holder that reaches its children otherwise (`children()`, `getattr`) proves nothing.
    """
    holder = root
    for name in parameter.split("."):
        if not type(holder).__module__.startswith("torch.nn.") and not _mentions(
            root, holder, name
        ):
            return holder, name
        holder = getattr(holder, name)
    return None


def _registration(holder: Any, name: str) -> Frame | None:
    """The line of the holder's class that assigns `self.name`."""
    for cls in type(holder).__mro__:
        try:
            lines, first = inspect.getsourcelines(cls)
            file = inspect.getsourcefile(cls)
        except (OSError, TypeError):
            continue
        for number, line in enumerate(lines, first):
            if file is not None and re.search(rf"\bself\.{name}\b[^=(]*=[^=]", line):
                return file, number, f"{cls.__qualname__}.__init__"
    return None


@harmless
def _uses(root: Any, parameters: list[str]) -> list[Frame]:
    """The lines by which forward reads what holds these parameters: `self.head(x)`."""
    found: dict[Frame, None] = {}
    for name in parameters:
        holder, begins = root, {"forward"}
        for child in name.split("."):
            reads = [*_reached(type(holder), begins)]
            begins = {"forward"} | {each.then for each in reads if each.name == child}
            found.update(dict.fromkeys(each.place for each in reads if each.name == child))
            holder = getattr(holder, child)
    return list(found)[:_SHOWN]


class _Read(NamedTuple):
    """An attribute that a method reads of its own object."""

    name: str
    then: str
    """The attribute that is read of it; "" if none is."""
    place: Frame


def _reached(cls: type, begins: set[str]) -> Iterator[_Read]:
    """What the user's methods of these names read, and those that they read, as they call them."""
    seen, ahead = set(begins), [*begins]
    while ahead:
        name = ahead.pop()
        for function in _functions(cls):
            if function.__name__ == name and is_users(function.__code__):
                for read in _read_of_itself(function.__code__):
                    yield read
                    if read.name not in seen:
                        seen.add(read.name)
                        ahead.append(read.name)


def _read_of_itself(method: CodeType) -> Iterator[_Read]:
    """By the method's first argument, in whatever is nested in it too."""
    if not method.co_argcount:
        return
    itself = method.co_varnames[0]
    for code in _nested(method):
        own = ("LOAD_FAST", "LOAD_DEREF") if code is method else ("LOAD_DEREF",)
        before, *instructions = [*dis.get_instructions(code)]
        for instruction, after in zip_longest(instructions, instructions[1:]):
            if _is_read(instruction) and before.opname.startswith(own):
                loaded = before.argval
                if (loaded[-1] if isinstance(loaded, tuple) else loaded) == itself:
                    then = after.argval if after is not None and _is_read(after) else ""
                    yield _Read(instruction.argval, then, _place(code, instruction.offset))
            before = instruction


def _is_read(instruction: dis.Instruction) -> bool:
    return instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")


def _place(code: CodeType, offset: int) -> Frame:
    here = (line for start, end, line in code.co_lines() if start <= offset < end)
    return code.co_filename, next(here, None) or code.co_firstlineno, code.co_qualname


_SHOWN = 4
_INDIRECT = {"children", "modules", "named_children", "named_modules", "_modules", "getattr"} | {
    "parameters",
    "named_parameters",
    "_parameters",
    "get_submodule",
    "get_parameter",
    "__dict__",
}


def _mentions(root: Any, holder: Any, name: str) -> bool:
    own = _attributes(type(holder))
    if name in own.on_self or name in own.on_others or own.names & _INDIRECT:
        return True
    return any(name in _attributes(type(module)).on_others for module in root.modules())


class _Attributes:
    """The attributes that a class's methods read, of self and of anything else."""

    def __init__(self) -> None:
        self.on_self: set[str] = set()
        self.on_others: set[str] = set()
        self.names: set[str] = set()


_read_classes: dict[type, _Attributes] = {}


def _attributes(cls: type) -> _Attributes:
    if cls in _read_classes:
        return _read_classes[cls]
    found = _read_classes[cls] = _Attributes()
    for code in _methods(cls):
        _read(code, found)
    return found


def _methods(cls: type) -> Iterator[CodeType]:
    """What a class of the user's runs but for its making, with all that is nested in it."""
    for function in _functions(cls):
        if function.__name__ != "__init__":
            yield from _nested(function.__code__)


def _functions(cls: type) -> Iterator[FunctionType]:
    """All that a class of the user's defines, those of its bases too."""
    for base in cls.__mro__:
        if base.__module__.startswith("torch.") or base is object:
            continue
        for method in vars(base).values():
            function = getattr(method, "__func__", getattr(method, "fget", method))
            if isinstance(function, FunctionType):
                yield function


def _read(code: CodeType, found: _Attributes) -> None:
    found.names.update(code.co_names)
    before = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            on_self = before is not None and before.argval == "self"
            (found.on_self if on_self else found.on_others).add(instruction.argval)
        before = instruction


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)

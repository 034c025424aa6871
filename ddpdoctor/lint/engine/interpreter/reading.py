"""What the workers of a loader do, run in the head where the loader is made, beside the program."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable

from ddpdoctor.lint.engine.interpreter.iteration import elements
from ddpdoctor.lint.engine.interpreter.library.facts import inside
from ddpdoctor.lint.engine.interpreter.machine import Left, Machine, Spent
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, indexing, members
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Node, Seq, walk
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    SAME,
    UNKNOWN,
    Either,
    Func,
    Many,
    Partial,
    Ref,
    Term,
    Value,
)

FUEL = 1_500
UNREAD = "unread"
"""The event at the end of a reading that was followed no further."""
_READ = ("dataset", "worker_init_fn", "collate_fn", "start")
NEW_PROCESSES = ("spawn", "forkserver")
"""How workers begin that have joined no group; one that is forked has what its rank has."""
_NESTED = 3


def read_by_workers(vm: Machine, loader: dict[str, Value], node: ast.AST) -> Seq:
    """The seeding of a worker, then one sample and one batch; nothing of it lasts.

    What cannot be followed to its end stands as it was read in an earlier round of a loop. Where it
    never was, it is told as far as it was followed, and that it goes on.
    """
    outside, tries, fuel, lazily, mask = vm.out, vm.tries, vm.fuel, vm.lazily, vm.mask
    keeps_cut, vm.keeps_cut, reserve, vm.reserve = vm.keeps_cut, True, vm.reserve, 0
    given = (id(node), tuple((name, each.what) for name, each in loader.items() if name in _READ))
    seq = vm.out = Seq()
    vm.tries, vm.fuel, vm.lazily = [], min(vm.reading, FUEL), frozenset()
    vm.apart = loader.get("start", NONE).is_const(*NEW_PROCESSES)
    vm.reading -= vm.fuel
    depth = vm.store.open()
    try:
        with contextlib.suppress(Left):
            _begin(vm, loader.get("worker_init_fn", NONE), node)
            owned = _of_the_users(vm, loader.get("dataset", NONE), _NESTED)
            samples = (read(vm, each, node) for each in owned)
            for sample in samples if owned else (Value(NOTHING, UNKNOWN),):
                _collate(vm, loader.get("collate_fn", NONE), sample, node)
        vm.read[given] = seq
    except Spent:
        vm.out = seq
        vm.emit(UNREAD, "", node)
    finally:
        vm.store.drop(depth)
        vm.out, vm.tries, vm.apart, vm.lazily = outside, tries, False, lazily
        vm.reading += max(vm.fuel, 0)
        vm.fuel, vm.keeps_cut, vm.mask, vm.reserve = fuel, keeps_cut, mask, reserve
    return vm.read.get(given, seq)


def read(vm: Machine, dataset: Value, node: ast.AST) -> Value:
    """One sample of a data set, whose reading is an event."""
    if is_stream(vm, dataset):
        one, count = elements(vm, dataset, node)
    else:
        if not _has(vm, dataset, "__getitem__"):
            _hold(vm, dataset, node)
        index = Value(Term("sample", (vm.site(node),)), UNKNOWN)
        one, count = indexing.item(vm, dataset, index, node), Value(index.what, SAME)
    held = {f"held_{name}": inside(vm, each) for name, each in vm.store.of(dataset.what).items()}
    vm.emit("sample", "", node, dataset=dataset, element=one, count=count, **held)
    return one


def is_own(vm: Machine, dataset: Value, workers: Seq) -> bool:
    """Whether ranks read different things: they hold these, or ask how to go through them."""
    held = (
        value
        for number in members.parts(vm.store.of, dataset.what)
        for value in vm.store.of(Ref(number)).values()
    )
    asked = (value for node, _ in walk(workers) for value in _asked(node))
    every = (each.agree for each in (dataset, *held, *asked))
    return any(each.divergent and each.cause not in BY_ACCIDENT for each in every)


def _asked(node: Node) -> Iterable[Value]:
    """What decides on it, or is handed to it."""
    match node:
        case Event():
            return node.values.values()
        case Choice():
            return [node.condition]
        case Loop():
            return [node.count]
    return []


BY_ACCIDENT = ("clock", "disk", "exception", "order", "signal")
"""By what data may be another on a rank without being its part: a file that it finds, an error."""


def is_stream(vm: Machine, dataset: Value) -> bool:
    """Whether a data set of the user's is gone through from its beginning."""
    made = vm.object(dataset)
    if made is None or made.cls < 0:
        return False
    if hierarchy.library_base(vm, made.cls).endswith("IterableDataset"):
        return True
    return _has(vm, dataset, "__iter__") and not _has(vm, dataset, "__getitem__")


def gives_samples(vm: Machine, number: int) -> bool:
    """Whether instances of a class are data sets."""
    return "dataset" in hierarchy.library_base(vm, number).lower()


def _has(vm: Machine, dataset: Value, name: str) -> bool:
    made = vm.object(dataset)
    return made is not None and hierarchy.class_attribute(vm, made.cls, name) is not None


def _hold(vm: Machine, dataset: Value, node: ast.AST) -> None:
    """What is read in ways that cannot be seen is picked of all that is held."""
    for each in vm.store.of(dataset.what).values():
        if (order := indexing.order_of(vm, each)) is not None:
            vm.emit("pick", "", node, order=order, index=Value(NOTHING, UNKNOWN))


def _begin(vm: Machine, function: Value, node: ast.AST) -> None:
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if isinstance(function.what, Func | Partial | Ref):
        vm.emit("worker", "", node, function=function)
        call_value(vm, function, [Value(Term("worker"), SAME)], {}, node)


def _collate(vm: Machine, function: Value, sample: Value, node: ast.AST) -> None:
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    if isinstance(function.what, Func | Partial | Ref):
        batch = containers.new_list_of(vm, node, Value(Many(sample), SAME))
        vm.emit("batch", "", node, element=call_value(vm, function, [batch], {}, node))


def _of_the_users(vm: Machine, dataset: Value, depth: int) -> list[Value]:
    """The data sets of the user's that are read, through those of a library around them."""
    if isinstance(dataset.what, Either):
        return [found for each in dataset.what.options for found in _of_the_users(vm, each, depth)]
    made = vm.object(dataset)
    if made is None:
        return []
    if made.cls >= 0:
        return [dataset]
    inner = vm.store.get((dataset.what, "dataset"))
    return _of_the_users(vm, inner, depth - 1) if inner is not None and depth else []

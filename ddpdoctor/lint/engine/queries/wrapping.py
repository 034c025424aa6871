"""Modules that a program wraps, and what is computed by them."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.objects import hierarchy, keyed, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    FALSE,
    NONE,
    Either,
    Many,
    Partial,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    is_layer,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import VIEWS, WITHOUT_GRAPH


def wrappers(run: Run) -> dict[What, Event]:
    """Wrapper, and the module inside -> where it was wrapped."""
    found: dict[What, Event] = {}
    for event, _ in events(run.root, "wrap"):
        found[event.values["wrapper"].what] = event
        if isinstance(event.values["module"].what, Ref | Term):
            found.setdefault(event.values["module"].what, event)
    return found


def has_graph(run: Run, value: Value, modules: Set[int]) -> bool:
    """Whether a tensor is computed from what these modules give in ways that a gradient goes."""
    for each in origins(run, value, *WITHOUT_GRAPH):
        made = run.vm.made.get(each.what)
        is_output = made is None or not any(made_by(part) & modules for part in made.of)
        if made_by(each) & modules and is_output:
            return True
    return False


def made_by(value: Value | None) -> frozenset[int]:
    """The modules whose forward a tensor comes from."""
    return value.what.of if value is not None and isinstance(value.what, Tensor) else frozenset()


def attributes(run: Run) -> dict[Ref, dict[str, Value]]:
    """All that objects hold, by object."""
    found: dict[Ref, dict[str, Value]] | None = run.answers.get("attributes")
    if found is None:
        found = run.answers["attributes"] = run.vm.store.held()
    return found


def parts(run: Run, module: What) -> set[int]:
    """A module and all that its attributes hold, by number; of an unknown one what it was given."""
    given = run.vm.store.of(module).values() if isinstance(module, Term) else ()
    return members.parts(attributes(run).get, Tuple((Value(module), *given)))


def has_no_buffers(run: Run, module: What) -> bool:
    """Whether all parts of a module are known, and none has anything but weights."""
    if isinstance(module, Either):
        return all(has_no_buffers(run, each.what) for each in module.options)
    owners = set(run.vm.buffers.values())
    if not isinstance(module, Ref) or not all(isinstance(each, Ref) for each in owners):
        return False
    held, inside = attributes(run), _registered(run, module)
    return not owners & set(map(Ref, inside)) and all(
        _is_without_buffers(run, number)
        and all(
            _is_no_module(run, value)
            for name, value in held.get(Ref(number), {}).items()
            if name[0] != "#" and name != members.TRAINING
        )
        for number in inside
    )


def _registered(run: Run, module: Ref) -> set[int]:
    """A module and those that it has registered: what a dictionary or a list holds is not."""
    held, found = attributes(run), set[int]()
    todo: list[What] = [module]
    while todo:
        each = todo.pop()
        if isinstance(each, Tuple):
            todo += [value.what for value in each.items]
        elif isinstance(each, Many):
            todo.append(each.element.what)
        elif isinstance(each, Either):
            todo += [value.what for value in each.options]
        elif isinstance(each, Ref) and each.number not in found and not is_plain(run, Value(each)):
            found.add(each.number)
            todo += [value.what for value in held.get(each, {}).values()]
    return found


def is_plain(run: Run, value: Value) -> bool:
    """Whether it is a list, a dictionary, or something else of which torch registers no part."""
    made = run.vm.object(value)
    if made is None:
        return False
    if made.cls < 0:
        return made.type in _WITHOUT_PARTS
    base = hierarchy.library_base(run.vm, made.cls)
    return base in ("dict", "list") or (not base and hierarchy.is_known(run.vm, made.cls))


_WITHOUT_PARTS = ("list", "dict", "set", keyed.NAMESPACE, "argparse.ArgumentParser")


def _is_without_buffers(run: Run, number: int) -> bool:
    made = run.vm.objects.get(number)
    if made is None:
        return False
    of = made.effect
    if made.cls >= 0:
        of = run.vm.library.exact(hierarchy.library_class(run.vm, made.cls))
    elif made.type not in (*members.MODULES, "list", "dict"):
        return False
    if of is None:
        is_module = made.cls >= 0 and not hierarchy.is_known(run.vm, made.cls)
        return not is_module and (made.cls >= 0 or made.type in ("list", "dict"))
    of_batches = "torch.nn.InstanceNorm", "torch.nn.SyncBatchNorm"
    return of.option("has") != "batch" and not of.name.startswith(of_batches)


def _is_no_module(run: Run, value: Value) -> bool:
    """Whether a value is none, or one whose object is known, or one of torch's without state."""
    what = value.what
    if isinstance(what, Tuple):
        return all(_is_no_module(run, each) for each in what.items)
    if isinstance(what, Many):
        return _is_no_module(run, what.element)
    if isinstance(what, Term):
        return is_layer(what) or what == keyed.ABSENT.what or run.vm.store.is_number(what)
    if isinstance(what, Either):
        return all(_is_no_module(run, each) for each in what.options)
    return not isinstance(what, Partial)


def mentioned(run: Run, value: Value) -> set[What]:
    """The objects and unknowns that a value is made of."""
    found: set[What] = set()
    stack: list[object] = [value.what]
    while stack:
        each = stack.pop()
        if isinstance(each, Ref | Term) and each in found:
            continue
        if isinstance(each, Ref):
            found.add(each)
            content = run.vm.store.get((each, "[]"))
            stack += [content.what] if content is not None else []
        elif isinstance(each, Term):
            found.add(each)
            stack += each.args
        elif isinstance(each, Tuple):
            stack += [item.what for item in each.items]
        elif isinstance(each, Many):
            stack.append(each.element.what)
        elif isinstance(each, Partial):
            stack.append(each.callee.what)
        elif isinstance(each, Either):
            stack += [option.what for option in each.options]
    return found


def objects_in(run: Run, value: Value) -> list[Ref]:
    """The objects that a value is made of."""
    return sorted((each for each in mentioned(run, value) if isinstance(each, Ref)), key=_number)


def stepped_by(run: Run, optimizer: Event) -> list[Ref]:
    """The objects whose weights an optimizer is given, by themselves or in groups."""
    given = in_groups(run, optimizer.values.get("parameters", NONE))
    return sorted((each for each in given if isinstance(each, Ref)), key=_number)


def in_groups(run: Run, parameters: Value) -> set[What]:
    """The objects and unknowns that parameters are made of, by themselves or in groups."""
    found = mentioned(run, parameters)
    groups = [
        value
        for each in found
        if isinstance(each, Ref)
        for _, value in keyed.entries(run.vm, Value(each))
    ]
    return found.union(*(mentioned(run, each) for each in groups))


def _number(ref: Ref) -> int:
    return ref.number


def decided_from(run: Run, condition: Value) -> set[What]:
    """What a condition is made of, and what the tensors in it were computed from."""
    found = mentioned(run, condition)
    for part in within(condition.what):
        if isinstance(part, Tensor):
            for each in origins(run, Value(part)):
                found |= mentioned(run, each)
    return found


def is_frozen(run: Run, what: What) -> bool:
    """Whether all weights of a layer are known to learn nothing."""
    return run.vm.store.get((what, "#requires_grad")) == FALSE


def weights_in(value: Value) -> Ref | None:
    """The module whose own weights this is, or a view of them: who writes into it changes them."""
    what: object = value.what
    while isinstance(what, Term):
        found = members.weights_of(what)
        if found is not None:
            return found
        what = _seen_through(what)
    if not isinstance(what, Partial) or "#" not in dict(what.named):
        return None
    layer = what.callee.what  # of the library: its weights are known by their name alone
    return layer if isinstance(layer, Ref) else None


def _seen_through(what: Term) -> object:
    """What a view is a view of, None of anything else."""
    if what.op in ("element", "item", "slice", "detached"):
        return what.args[0]
    if what.op == "of" and what.args[1] in ("data", *VIEWS):
        return what.args[0]
    if what.op == "call" and (what.args[0] in VIEWS or what.args[0].endswith("_")):
        return what.args[1]  # what is done in place gives the tensor itself
    if what.op == "call" and what.args[0] in ("values", "items"):
        return what.args[1]  # of a state_dict(), whose tensors are the weights themselves
    return None


def computed_from(run: Run, value: Value) -> Iterator[tuple[Value, Made]]:
    """What a value was computed from, step by step back, each with how it was made."""
    for each in origins(run, value):
        made = run.vm.made.get(each.what)
        if made is not None:
            yield each, made


def origins(run: Run, value: Value, *until: str) -> Iterator[Value]:
    """A tensor and all tensors and unknowns that it was computed from, back to such steps."""
    seen: set[What] = set()
    stack = [value]
    while stack:
        each = stack.pop()
        what = each.what
        if isinstance(what, Tuple):
            stack += what.items
        elif isinstance(what, Many):
            stack.append(what.element)
        elif isinstance(what, Partial) and isinstance(what.callee.what, Tensor):
            stack.append(what.callee)  # a part of it, as the loss among what a model gives
        elif isinstance(what, Tensor | Term) and what not in seen:
            seen.add(what)
            yield each
            made = run.vm.made.get(what)
            if made is not None and made.by not in until:
                stack += made.of

"""A module that is called: a wrapper, or one of the user's."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.library.facts import wrappers
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, keyed, members, memory
from ddpdoctor.lint.engine.interpreter.tree import Event
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    UNKNOWN,
    Agreement,
    Const,
    Either,
    Many,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    Why,
    blended,
    local,
    mix,
    within,
)


def forward(
    vm: Machine, model: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """Call a module: a wrapper, or one of the user's."""
    done, result = _forward(vm, model, args, kwargs, node)
    done.values["result"] = result
    return result


def _decides_here(vm: Machine, value: Value) -> bool:
    """Whether a number decides that a forward is run, as it is asked around it: a setting."""
    asked = (part for each in vm.conditions for part in within(each.what))
    return isinstance(value.what, Term) and any(
        isinstance(each, Term)
        and each.op in ("Gt", "GtE", "Lt", "LtE")
        and each.args[0] == value.what
        and isinstance(each.args[1], Const)
        for each in asked
    )


def _forward(
    vm: Machine, model: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> tuple[Event, Value]:
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    values = {f"arg{number}": each for number, each in enumerate(args)}
    made = vm.object(model)
    is_wrapper = made is not None and made.type == members.DDP
    assert isinstance(model.what, Ref)
    every = [memory.current(vm, each) for each in (*args, *kwargs.values())]
    module = model
    if is_wrapper:
        group = vm.store.get((model.what, "#process_group")) or NONE
        named = {f"kw_{word}": each for word, each in kwargs.items()}
        if (shares := vm.store.get((model.what, "#broadcast_buffers"))) is not None:
            named["shares_buffers"] = shares
        module = vm.store.get((model.what, "module")) or Value(NOTHING, UNKNOWN)
        if (mode := vm.store.get((module.what, members.TRAINING))) is not None:
            named["training"] = mode
        done = vm.emit("forward", "forward", node, model=model, group=group, **values, **named)
        for each in every:
            if each.agree.kind == "unknown" and not _decides_here(vm, each):
                fed = vm.why("it is fed to the model: each rank has its own data", node)
                memory.touch(vm, each, local("data", False), fed)
        _send_buffers(vm, module, shares)
    else:
        done = vm.emit("bare_forward", "forward", node, model=model, **values)
    inner = vm.object(module)
    result: Value | None = None
    if inner is not None and inner.effect is not None and inner.effect.option("runs") == "each":
        result = _one_after_another(vm, module, args, node)
    if inner is not None and inner.cls >= 0:
        method = hierarchy.class_attribute(vm, inner.cls, "forward")
        if method is not None:
            bound = members.attribute(vm, module, "forward", node)
            result = call_value(vm, bound, args, kwargs, node)
    if result is not None and not is_wrapper and not _learns(vm, module):
        return done, result
    through = every if result is None or is_wrapper else [*every, result]
    of = frozenset({model.what.number}).union(*(wrappers(vm, each) for each in through))
    agree, why = blended([memory.current(vm, each) for each in (*args, *kwargs.values())])
    if agree.kind in ("unknown", "same") and is_wrapper:
        agree = local("data", False)
        why = vm.why("each rank's model sees its own data", node)
    elif agree.cause == "chance" and is_wrapper:
        agree = local("data", agree.sure)  # what a rank has drawn for itself is its own data
    if agree.divergent and is_wrapper and why is not None and why.node is not node:
        why = vm.why("the model's output of this rank's own data", node, why)
    if vm.is_without_gradients:
        of = frozenset()
    given = None if result is None else containers.if_any(result)
    if given is not None and (isinstance(given.what, Tuple) or vm.type_of(given) == "dict"):
        marked = _marked(vm, given, of, agree, why, (model, *every), node)
        if given is result:
            return done, marked
        assert result is not None
        return done, Value(Either((NONE, marked)), result.agree, result.why)
    if result is not None and result.agree.divergent and result.agree.cause != "chance":
        agree, why = result.agree, result.why
    found = memory.fresh(vm, Value(Tensor(vm.site(node, "forward"), of), agree, why))
    inside = () if result is None else (result,)
    return done, vm.computed(found, "forward", (model, *every, *inside), node)


def _send_buffers(vm: Machine, module: Value, shares: Value | None) -> None:
    """What ranks have put into buffers is rank 0's on all of them, unless that was turned off."""
    if vm.buffers and not (shares is not None and shares.is_const(False)):
        inside = members.parts(vm.store.of, module.what)
        for buffer, owner in vm.buffers.items():
            if isinstance(owner, Ref) and owner.number in inside:
                memory.touch(vm, Value(buffer), UNKNOWN)


def _learns(vm: Machine, module: Value) -> bool:
    """Whether it may have weights: what a loss or the like gives is only what it computes."""
    if vm.buffers:  # which DDP sends round
        return True
    held = [vm.objects.get(number) for number in members.parts(vm.store.of, module.what)]
    return any(
        each is None
        or each.type == "torch.nn.Parameter"
        or (each.effect is not None and each.effect.option("has") != "")
        for each in held
    )


def _one_after_another(
    vm: Machine, module: Value, args: list[Value], node: ast.AST
) -> Value | None:
    """The forward of a sequence of modules."""
    from ddpdoctor.lint.engine.interpreter.calls import call_value

    found = containers.content(vm, module)
    if found is None:
        return None
    for each in _in_turn(found):
        args = [call_value(vm, each, args, {}, node)]
    return args[0] if args else None


def _in_turn(found: Value) -> tuple[Value, ...]:
    """The modules of a sequence: of what was put into a list in a loop, each is gone through."""
    parts: list[Value] = []
    for each in containers.held(found):
        what = each.what
        if isinstance(what, Either) and what.chosen is None:
            parts += what.options
        else:
            parts.append(each)
    return tuple(parts)


def _marked_one(
    vm: Machine,
    one: Value,
    of: frozenset[int],
    agree: Agreement,
    why: Why | None,
    given: tuple[Value, ...],
    node: ast.AST,
) -> Value | None:
    """A tensor that a forward gives in something else; None of what is none."""
    if not isinstance(one.what, Tensor):
        return None
    merged = agree if one.agree.cause == "chance" else mix(one.agree, agree)
    marked = Value(Tensor(one.what.site, of), merged, one.why or why)
    return vm.computed(marked, "forward", (one, *given), node)


def _mark_each(
    vm: Machine,
    held: Value,
    of: frozenset[int],
    agree: Agreement,
    why: Why | None,
    given: tuple[Value, ...],
    node: ast.AST,
) -> None:
    """The same of the tensors in a list that a forward gives in a dictionary."""
    content = containers.content(vm, held) if vm.type_of(held) == "list" else None
    if content is None:
        return
    items = [
        _marked_one(vm, each, of, agree, why, given, node) for each in containers.held(content)
    ]
    if not items or None in items:
        return
    whole = [each for each in items if each is not None]
    what = content.what
    changed = Many(whole[0], what.number) if isinstance(what, Many) else Tuple(tuple(whole))
    vm.store.put((held.what, "[]"), Value(changed, content.agree, content.why))


def _marked(
    vm: Machine,
    result: Value,
    of: frozenset[int],
    agree: Agreement,
    why: Why | None,
    given: tuple[Value, ...],
    node: ast.AST,
) -> Value:
    if isinstance(result.what, Tuple):
        items = []
        for each in result.what.items:
            merged = agree if each.agree.cause == "chance" else mix(each.agree, agree)
            what = each.what
            # A tensor keeps its name; what is one on some ways only is computed from those.
            inside = () if isinstance(what, Tensor) else (each,)
            if isinstance(what, Tensor | Term):
                site = what.site if isinstance(what, Tensor) else hash(what)
                what = Tensor(site, of)
            one = Value(what, merged, each.why or why)
            items.append(vm.computed(one, "forward", (*given, *inside), node))
        return Value(Tuple(tuple(items)), result.agree, result.why)
    for key, one in keyed.entries(vm, result):
        marked = _marked_one(vm, one, of, agree, why, given, node)
        if marked is not None:
            keyed.set_item(vm, result, key, marked, node)
        else:
            _mark_each(vm, one, of, agree, why, given, node)
    return result

"""Modules that are registered and never used.

## What it does
Finds submodules with parameters that a class makes in `__init__` and that nothing ever reads
again, and forwards that use other parts in one step than in the next, of a model in DDP. And a
part that is frozen after the wrap, while the others go on. And outputs that have a share in the
loss of some rounds alone, by the number of the epoch.

## Why is this bad?
Their parameters never get a gradient. DDP waits for them, and the second forward raises "Expected
to have finished reduction in the prior iteration"; `find_unused_parameters=True` only hides them.

## Example
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)  # never called

    def forward(self, x):
        return self.body(x)
```

## Use instead
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import binding, hierarchy, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Event,
    Loop,
    Seq,
    Way,
    events,
)
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    TRUE,
    Const,
    Func,
    Ref,
    Term,
    Value,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.forwards import (
    decided_by,
    depends,
    forward_of,
    has_more_rounds,
    learns,
    learns_in,
    surely_used,
    used,
)
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.outputs import (
    arms_with_all,
    computed_from_parts,
    dropped,
)
from ddpdoctor.lint.engine.queries.reading import (
    computes_from_all,
    reads,
    reads_all,
    reads_where_it_goes,
)
from ddpdoctor.lint.engine.queries.wrapping import (
    decided_from,
    is_frozen,
    is_plain,
    made_by,
    mentioned,
    parts,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP301", name="unused-parameters", confidence="likely")


_SEARCHES = ("find_unused_parameters", "static_graph", "learns_what_is_used")
_CHANGES = ("counter", "element", "joined", "drawn", "either")
_MODULE = "torch.nn.Module"
_SETTINGS = ("option", "parameter", "field", "env", "of")


def check(run: Run) -> Iterator[Hit]:
    """Yield parts of wrapped modules that nobody asks for, or not in every step."""
    told: dict[int, Hit] = {}
    found = (*_dead(run), *_switched(run), *_unread(run), *_passed_over(run), *_frozen_late(run))
    for hit in found:
        told.setdefault(id(hit.node), hit)
    yield from told.values()


def _dead(run: Run) -> Iterator[Hit]:
    inside: set[int] = set()
    for wrap, _ in events(run.root, "wrap"):
        if not _searches(wrap) and not _gives_nothing(run, wrap.values["module"]):
            inside |= parts(run, wrap.values["module"].what)
    told: set[int] = set()
    for event, _ in events(run.root, "set_attribute") if inside else ():
        owner, value = event.values["owner"], event.values["value"]
        if not isinstance(owner.what, Ref) or owner.what.number not in inside:
            continue
        if run.vm.store.get((owner.what, event.name)) is binding.REMOVED:
            continue
        if id(event.node) in told or not _is_whole(run, owner) or reads(run, event.name):
            continue
        if is_plain(run, value):
            continue  # nor is it registered, so that DDP knows nothing of it
        if _is_made_here(run, event) and learns(run, value.what) and not is_frozen(run, value.what):
            told.add(id(event.node))
            yield Hit(
                event.node,
                f"`self.{event.name}` is registered, never used: its parameters get no gradient",
                notes=("DDP raises at the second forward, or find_unused_parameters hides it",),
                help="delete it, or use it in forward",
                path=event.path,
            )


def _gives_nothing(run: Run, module: Value) -> bool:
    """Whether the forward of a module gives nothing of which a loss could be made."""
    made = run.vm.object(module)
    forward = (
        hierarchy.class_attribute(run.vm, made.cls, "forward") if made and made.cls >= 0 else None
    )
    if forward is not None:
        forward = run.vm.store.get((forward.what, "__wrapped__")) or forward
    if forward is None or not isinstance(forward.what, Func):
        return False
    node = run.vm.functions[forward.what.number].node
    parts_ = node.body if isinstance(node.body, list) else []
    inside = [each for part in parts_ for each in ast.walk(part)]
    gives = (ast.Return, ast.Yield, ast.YieldFrom)
    return bool(parts_) and not any(isinstance(each, gives) and each.value for each in inside)


def _switched(run: Run) -> Iterator[Hit]:
    """Wraps that do not search, of modules that use other parts in one step than in the next."""
    for wrap, _ in events(run.root, "wrap"):
        if _searches(wrap):
            continue
        wrapper = wrap.values["wrapper"].what
        forward = forward_of(run, wrap.values["module"])
        by_argument = {
            place
            for condition, place, _ in (decided_by(run, forward.seq) if forward else ())
            if forward is not None and depends(run, condition, forward)
        }
        for event, way in events(run.root, "forward"):
            if event.values["model"].what != wrapper or "no_grad" in event.scopes:
                continue
            inner = way[-1].rest[0] if way[-1].rest else None
            if not isinstance(inner, Called) or not any(map(learns_in, _loops(way))):
                continue
            for condition, place, test in decided_by(run, inner.body, surely_used(run, inner.body)):
                is_given = place in by_argument or condition.agree.kind == "local"
                if is_given and _changes(run, condition) and not _is_of_the_making(run, test):
                    yield Hit(
                        wrap.node,
                        "some steps leave a part of this model out: its parameters get no gradient",
                        notes=(Related.at(place, "this decides it in the forward"),),
                        help="find_unused_parameters=True, or use every part in every step",
                        path=wrap.path,
                    )
                    break


def _is_of_the_making(run: Run, test: ast.AST) -> bool:
    """Whether a condition stands where parts are made: what is decided there stays, and is there.

    A forward that calls the one of two layers that was made asks it no more.
    """
    makers = (each.node for each in run.vm.visited.values() if each.name.endswith(".__init__"))
    return any(test is each for maker in makers for each in ast.walk(maker))


def _unread(run: Run) -> Iterator[Hit]:
    """Calls of parts from whose output nothing is computed, or by some ranks' batches alone."""
    if not run.is_entry or reads(run, "register_forward_hook"):
        return  # somebody else may be given the output
    if any(_is_untold(run, *each) for each in events(run.root, "forward")):
        return
    inside: set[int] = set()
    for wrap, _ in events(run.root, "wrap"):
        if not _searches(wrap):
            inside |= parts(run, wrap.values["module"].what)
    for each in () if computes_from_all(run) else dropped(run, inside):
        if each.name and not is_frozen(run, each.call.values["model"].what):
            yield Hit(
                each.call.node,
                f"nobody reads `{each.name}`: the layer that gives it gets no gradient",
                notes=("DDP raises at the second forward, or find_unused_parameters hides it",),
                help="do not make this layer where its output is not used, or use it in the loss",
                path=each.call.path,
            )
    for one, nodes in computed_from_parts(run, inside):
        if is_frozen(run, one.values["model"].what):
            continue
        if nodes:
            yield from _in_one_arm(run, one, nodes)
        else:
            yield Hit(
                one.node,
                "nothing is computed from what this gives: its parameters get no gradient",
                notes=("DDP raises at the second forward, or find_unused_parameters hides it",),
                help="do not make this part where its output is not used, or use it in the loss",
                path=one.path,
            )


def _is_untold(run: Run, event: Event, way: Way) -> bool:
    """Whether it runs a forward of the user's that was not followed again: its parts are used."""
    module = run.vm.store.get((event.values["model"].what, "module"))
    made = run.vm.object(module) if module is not None else None
    is_told = bool(way[-1].rest) and isinstance(way[-1].rest[0], Called)
    return made is not None and made.cls >= 0 and not is_told and "no_grad" not in event.scopes


def _passed_over(run: Run) -> Iterator[Hit]:
    """Wraps of models with a layer that another way through one of its parts alone would use.

    So is the head of a language model of which a reward model takes the hidden states.
    """
    if not run.is_entry or run.spent or reads(run, "register_forward_hook"):
        return
    steps = [
        (event, way) for event, way in events(run.root, "forward") if "no_grad" not in event.scopes
    ]
    if any(_is_untold(run, event, way) for event, way in steps):
        return
    changes = events(run.root, "unfreeze", "set_attribute")
    turned = [_taken_from(run, event) for event, _ in changes if _turned(event) is not None]
    for wrap in [event for event, _ in events(run.root, "wrap")]:
        module, wrapper = wrap.values["module"], wrap.values["wrapper"].what
        own = [way for event, way in steps if event.values["model"].what == wrapper]
        known = forward_of(run, module) if not _searches(wrap) and own else None
        if known is None or known.unknown or not any(map(learns_in, _loops(own[0]))):
            continue
        taken = used(run, known.seq).union(*(used(run, Seq([*way[-1].rest[:1]])) for way in own))
        inside = parts(run, module.what)
        if inside & {*run.vm.handed} or computes_from_all(run):
            continue
        for event, _ in events(run.root, "set_attribute"):
            owner, value = event.values["owner"], event.values["value"]
            if not isinstance(owner.what, Ref) or owner.what.number not in inside:
                continue
            layers = learns(run, value.what)
            if not layers or layers & taken or layers - inside or not _is_made_here(run, event):
                continue
            if not parts(run, owner.what) & taken:
                continue  # it is not seen which way goes through what has it
            if any(not of or of & layers for of in turned):
                continue
            if not _is_whole(run, owner) or is_frozen(run, value.what) or is_plain(run, value):
                continue
            if reads(run, event.name) and not reads_where_it_goes(run, event.name):
                yield Hit(
                    wrap.node,
                    f"no forward of this model uses `{event.name}`: its parameters get no gradient",
                    notes=(
                        Related.at(event.place, "it is made"),
                        "DDP raises at the second forward",
                    ),
                    help="take it out of the model, or find_unused_parameters=True",
                    path=wrap.path,
                )
                break


def _frozen_late(run: Run) -> Iterator[Hit]:
    """A part of a wrapped model that is frozen for good, while the rest goes on learning.

    Where all of it is frozen, DDP waits for nothing: so two models that learn in turn do it.
    """
    wraps = [(event, way) for event, way in events(run.root, "wrap") if not _searches(event)]
    changes = list(events(run.root, "unfreeze", "set_attribute")) if wraps else []
    turns = [(event, way, on) for event, way in changes if (on := _turned(event)) is not None]
    for wrap, at in wraps:
        module = wrap.values["module"].what
        inside = learns(run, module)
        backwards = events(run.root, "backward")
        learnt = [way for event, way in backwards if made_by(event.values["loss"])]
        known = [_taken_from(run, event) for event, to, on in turns if not on and is_after(to, at)]
        for event, way, on in turns:
            if on or not is_after(at, way) or doers(way).mask != EVERYONE:
                continue
            frozen = _taken_from(run, event) & inside.difference(*known)
            again = any(yes and _taken_from(run, each) & frozen for each, _, yes in turns)
            if not frozen or frozen >= inside.difference(*known) or again:
                continue
            wrapped_again = any(
                each.values["module"].what == module and is_after(way, to)
                for each, to in events(run.root, "wrap")
            )
            around = _loops(way)
            goes_on = any(is_after(way, to) or {*around} & {*_loops(to)} for to in learnt)
            if goes_on and not wrapped_again:
                yield Hit(
                    event.node,
                    "this part is frozen after the model was wrapped: DDP waits for its gradients",
                    notes=(Related.at(wrap.place, "it is wrapped"),),
                    help="freeze it first and wrap the model (again), or find_unused_parameters",
                    path=event.path,
                )


def _turned(event: Event) -> bool | None:
    """Whether it lets weights learn, or keeps them from it; None where it does neither."""
    if event.kind == "unfreeze":
        asked = event.values.get("on") or event.values.get("arg0") or TRUE
    elif event.name == "requires_grad":
        asked = event.values["value"]
    else:
        return None
    return asked.constant is not False


def _taken_from(run: Run, event: Event) -> set[int]:
    """The layers whose weights an event is about."""
    owner = event.values.get("owner") or event.values["object"]
    found = {each for each in mentioned(run, owner) if isinstance(each, Ref)}
    return {number for each in found for number in learns(run, each)}


def _in_one_arm(run: Run, call: Event, nodes: list[ast.AST]) -> Iterator[Hit]:
    """Where all that is computed from an output stands under a condition: not of every round.

    Either the rank's own data decide it, or the number of the round.
    """
    for choice, way, arm in arms_with_all(run, nodes):
        if has_more_rounds(way):
            continue
        agree = choice.condition.agree
        # What comes in another order is in the end the same on all ranks.
        is_own = agree.kind == "local" and agree.sure and agree.cause != "order"
        is_turn = not is_own and _is_of_the_round(run, choice.condition, way)
        if is_own or (is_turn and _learns_without(run, call, arm, way)):
            yield Hit(
                choice.test,
                "where this is decided otherwise, a part of the model has no share in the loss",
                notes=(Related.at(call.place, "this part: its parameters get no gradient"),),
                why=choice.condition.why,
                help="an else that adds its output times zero, or find_unused_parameters=True",
                path=choice.path,
            )
            return


def _is_of_the_round(run: Run, condition: Value, way: Way) -> bool:
    """Whether the number of a round of the training decides, and no setting besides.

    But that of how many rounds each is one, where it is not 1 unless somebody says so.
    """
    begun = [step.begun for step in way if isinstance(step.node, Loop) and learns_in(step.node)]
    elements = [each.values["element"] for each in begun if each is not None]
    counted = {part for each in elements for part in mentioned(run, each) if _is_counter(part)}
    counted |= {each for loop in _loops(way) if learns_in(loop) for each in loop.counted}
    found = decided_from(run, condition) if counted else set()
    by_turns = any(isinstance(each, Term) and each.op == "Mod" for each in found)
    settings = [each for each in found if isinstance(each, Term) and each.op in _SETTINGS]
    is_set = any(not by_turns or not _is_several(run, each) for each in settings)
    return not is_set and not counted.isdisjoint(found)


def _is_several(run: Run, setting: Term) -> bool:
    given = members.default(run.vm, Value(setting))
    number = given.constant if given is not None else None
    return isinstance(number, int) and number > 1


def _is_counter(what: object) -> bool:
    return isinstance(what, Term) and what.op == "counter"


def _learns_without(run: Run, call: Event, arm: set[int], way: Way) -> bool:
    """Whether the wrapper around a part is trained where an arm is not gone through."""
    loop = next(each for each in _loops(way) if learns_in(each))
    number = call.values["model"].what
    around = {
        wrap.values["wrapper"].what
        for wrap, _ in events(run.root, "wrap")
        if isinstance(number, Ref) and number.number in parts(run, wrap.values["module"].what)
    }
    ahead = [e for e, _ in events(loop.body, "forward") if e.values["model"].what in around]
    losses = [e for e, _ in events(loop.body, "backward") if id(e.node) not in arm]
    learnt = {Ref(each) for e in losses for each in made_by(e.values["loss"])}
    return any(id(each.node) not in arm for each in ahead) and not learnt.isdisjoint(around)


def _loops(way: Way) -> list[Loop]:
    return [step.node for step in way if isinstance(step.node, Loop)]


def _searches(wrap: Event) -> bool:
    """Whether a wrapper is asked to find what takes no part, or promised that nothing changes."""
    promises = [wrap.values.get(f"kw_{word}") for word in _SEARCHES]
    return any(each is not None and not each.is_const(False) for each in promises)


def _changes(run: Run, condition: Value) -> bool:
    """Whether a condition, or an index, differs from one step to the next."""
    agree = condition.agree
    if agree.divergent and (agree.sure or agree.cause != "chance"):
        return agree.sure
    found = decided_from(run, condition)
    if any(isinstance(each, Term) and each.op in _SETTINGS for each in found):
        return False
    if agree.divergent:  # whoever has seeded it: what is drawn is another number in the next step
        return not _is_never(condition.what) and any(_is_drawn(each) for each in found)
    return any(isinstance(each, Term) and each.op in _CHANGES for each in found)


def _is_drawn(what: object) -> bool:
    return isinstance(what, Term) and what.op == "drawn"


def _is_never(what: object) -> bool:
    """Whether it compares with the bounds of what is drawn: `random() < 0.0`, a rate not in use."""
    return any(isinstance(each, Const) and each.value in (0, 1) for each in within(what))


def _is_whole(run: Run, owner: Value) -> bool:
    """Whether it is a module with a forward, all of whose code is seen and names what it uses."""
    made = run.vm.object(owner)
    if made is None or made.cls < 0:
        return False
    # What derives from another of torch's modules uses what that one names.
    base = hierarchy.library_class(run.vm, made.cls)
    if hierarchy.library_base(run.vm, made.cls) != _MODULE or not base.endswith(".Module"):
        return False
    if hierarchy.class_attribute(run.vm, made.cls, "forward") is None:
        return False
    return not any(reads_all(run, each) for each in hierarchy.bases(run.vm, made.cls))


def _is_made_here(run: Run, event: Event) -> bool:
    return event.function.endswith(".__init__")

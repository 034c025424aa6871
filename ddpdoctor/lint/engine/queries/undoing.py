"""What some ranks do to a model alone, and undo: a trial of theirs, of which nothing is left."""

from __future__ import annotations

from ddpdoctor.lint.engine.interpreter.objects.members import weights_of
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Ref, Term, What, within
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.sharding import loops


def gives_back(run: Run, load: Event, way: Way) -> bool:
    """Whether a model gets back what all ranks had, and these alone have learnt in between."""
    if _has_it(run, load):
        return True
    kept = _kept(run, load)
    if kept is None:
        return False
    (copy, at), mask = kept, doers(way).mask
    again = {id(each) for each in loops(way)} - {id(each) for each in loops(at)}
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    between = range(order[id(copy)], order[id(load)])
    return not any(
        (order[id(step)] in between or again.intersection(map(id, loops(there))))
        and doers(there).mask & ~mask
        for step, there in events(run.root, "step")
    )


def is_undone(run: Run, learnt: Event, way: Way, models: set[What]) -> bool:
    """Whether what some ranks have learnt alone is gone, as they have given the model back."""
    who = doers(way)
    if not who.some:
        return False
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    return any(
        doers(there).mask == who.mask
        and (load.values.get("object") or NONE).what in models
        and (kept := _kept(run, load)) is not None
        and order[id(kept[0])] < order[id(learnt)] < order[id(load)]
        and gives_back(run, load, there)
        for load, there in events(run.root, "load_state")
    )


def _has_it(run: Run, load: Event) -> bool:
    """Whether it is given its own state as it is, by which an optimizer's follows its weights."""
    owner, state = load.values.get("object"), load.values.get("state")
    if owner is None or state is None:
        return False
    made = run.vm.made.get(state.what)
    if made is not None and made.by == "state_dict":
        return made.of[0].what == owner.what
    return state.what == Term("state", (owner.what,)) or weights_of(state.what) == owner.what


def _kept(run: Run, load: Event) -> tuple[Event, Way] | None:
    """The copy of a model's own state that is loaded into it, where all ranks had it alike."""
    model, state = load.values.get("object"), load.values.get("state")
    if model is None or state is None or not isinstance(model.what, Ref):
        return None
    if state.agree.kind != "same" or model.what not in within(state.what):
        return None
    copies = events(run.root, "copy")
    return next((each for each in copies if each[0].values["result"].what == state.what), None)

"""DDP301: parameters that took no part in the loss, by name, and whether they are dead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, Wrapper

_MESSAGE = "Expected to have finished reduction in the prior iteration"
_INDICES = re.compile(r"did not receive grad for rank \d+: ([\d ]+)")
_SHOWN = 6


@detector(precedence=285)
def detect(case: Case) -> Iterator[Finding]:
    """Name the parameters behind DDP's indices, or those that find_unused_parameters hides."""
    hit = [each for each in case.raised if _MESSAGE in each.exception.message]
    if hit:
        case.explain(*hit)
        yield _crashed(case, hit)
    else:
        yield from _hidden(case)


def _crashed(case: Case, hit: list[Raised]) -> Finding:
    unused = {each.rank.rank: _names(each) for each in hit}
    wrapper = next((w for each in hit if (w := _wrapper(each)) is not None), None)
    ranks = tuple(unused)
    raised = RankPlace(ranks=ranks, place=hit[0].exception.place, doing="raised RuntimeError")
    places = (*_registered(ranks, wrapper), raised) if wrapper is not None else (raised,)
    uses = [
        RankPlace(ranks=ranks, place=place, doing="uses them", phase="forward")
        for place in _uses(hit)
    ]
    places = (*places, *uses)
    names = sorted(set().union(*unused.values()))
    dead = [name for name in names if wrapper is not None and name in wrapper.unreferenced]
    frozen = {n for each in hit if (w := _wrapper(each)) is not None for n in w.frozen or ()}
    if names and wrapper is not None and frozen.issuperset(names):
        return _frozen(case, hit, names, wrapper)
    changed = wrapper is not None and wrapper.static_graph
    awake, asleep = [n for n in names if n not in frozen], sorted(frozen.intersection(names))
    also = f" Frozen after the wrap: {_listed(asleep)}." if asleep else ""
    is_known = wrapper is not None and (wrapper.frozen is not None or len(dead) == len(names))
    return Finding(
        code="DDP317" if changed else "DDP301",
        title="static-graph-changed" if changed else "unused-parameters",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=places,
        cause=f"static_graph=True, and the graph changed: {_cause(awake, dead)}{also}"
        if changed
        else _cause(awake, dead) + also
        if is_known
        else f"{_count(names)} got no gradient, dead, frozen since or skipped by a branch: "
        f"{_listed(names)}.",
        cure=Cure(text="Use find_unused_parameters=True, or keep the graph the same at every step.")
        if changed
        else _cure(names, dead),
        evidence=(_indices_line(hit[0]), *_by_rank(unused)),
        consequences=case.consequences(),
    )


def _frozen(case: Case, hit: list[Raised], names: list[str], wrapper: Wrapper) -> Finding:
    """They take part in the forward pass as ever; DDP waits for gradients that nobody computes."""
    ranks = tuple(each.rank.rank for each in hit)
    freezes = [
        RankPlace(ranks=ranks, place=place, doing="freezes parameters") for place in wrapper.freezes
    ]
    return Finding(
        code="DDP301",
        title="unused-parameters",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            *freezes,
            RankPlace(ranks=ranks, place=wrapper.place, doing="wrapped the model"),
            RankPlace(ranks=ranks, place=hit[0].exception.place, doing="raised RuntimeError"),
        ),
        cause=f"{_count(names)} frozen after the wrap: {_listed(names)}. DDP counted on their "
        "gradients as it was built, and waits for them.",
        cure=Cure(
            text="Freeze before the wrap, wrap anew after it, or keep requires_grad and leave them "
            "out of the optimizer."
        ),
        evidence=(_indices_line(hit[0]),),
        consequences=case.consequences(),
    )


def _hidden(case: Case) -> Iterator[Finding]:
    """Dead parameters under find_unused_parameters or static_graph: it runs, they never learn."""
    holders = [
        (rank, wrapper)
        for rank in case.evidence.ranks
        for wrapper in rank.wrappers
        if wrapper.unreferenced and (wrapper.find_unused or wrapper.static_graph)
    ]
    if not holders:
        return
    ranks = tuple(rank.rank for rank, _ in holders)
    wrapper = holders[0][1]
    option = "find_unused_parameters" if wrapper.find_unused else "static_graph"
    dead = list(wrapper.unreferenced)
    yield Finding(
        code="DDP301",
        title="unused-parameters",
        severity="warning",
        certainty="evidence",
        ranks=ranks,
        places=_registered(ranks, wrapper),
        cause=f"{option}=True hides {_count(dead)}: {_listed(dead)}.",
        cure=_cure(dead, dead),
        evidence=(f"no gradient at the optimizer step, and no forward names: {_listed(dead)}",),
    )


def _registered(ranks: tuple[int, ...], wrapper: Wrapper) -> tuple[RankPlace, ...]:
    """The lines that register the dead modules, then the one that wraps the model."""
    dead = (
        RankPlace(ranks=ranks, place=p, doing="registered, never used") for p in wrapper.registered
    )
    return (*dead, RankPlace(ranks=ranks, place=wrapper.place, doing="wrapped the model"))


def _uses(hit: list[Raised]) -> list[Place]:
    """Where the model reads what was skipped."""
    wrappers = [wrapper for each in hit for wrapper in each.rank.wrappers]
    return list(dict.fromkeys(place for wrapper in wrappers for place in wrapper.uses))


def _names(raised: Raised) -> set[str]:
    """Names behind the indices of the message; the index itself where the wrapper is not known."""
    indices, wrapper = _indices(raised), _wrapper(raised)
    if wrapper is None or max(indices, default=0) >= len(wrapper.parameters):
        return {f"parameter {index}" for index in indices}
    return {wrapper.parameters[index] for index in indices}


def _indices(raised: Raised) -> list[int]:
    match = _INDICES.search(raised.exception.message)
    return [int(index) for index in match[1].split()] if match else []


def _wrapper(raised: Raised) -> Wrapper | None:
    """The latest of the rank's that the indices fit."""
    most = max(_indices(raised), default=0)
    wrappers: list[Wrapper] = raised.rank.wrappers
    fitting = [each for each in wrappers if most < len(each.parameters)]
    return next(reversed(fitting or wrappers), None)


def _cause(names: list[str], dead: list[str]) -> str:
    if len(dead) == len(names):
        return f"{_count(names)} registered but never used, dead: {_listed(names)}."
    conditional = [name for name in names if name not in dead]
    text = f"{_count(conditional)} skipped by this step, conditional: {_listed(conditional)}"
    return f"{text}; dead: {_listed(dead)}." if dead else f"{text}."


def _cure(names: list[str], dead: list[str]) -> Cure:
    if len(dead) == len(names):
        text = "Delete the dead modules, or freeze them with requires_grad_(False)."
    else:
        text = (
            "For true branches find_unused_parameters=True, or static_graph=True if the branch "
            "never changes; dead modules are to be deleted."
        )
    return Cure(text=text)


def _indices_line(raised: Raised) -> str:
    match = _INDICES.search(raised.exception.message)
    return f"DDP's own words: indices {match[1].strip()}" if match else _MESSAGE


def _by_rank(unused: dict[int, set[str]]) -> tuple[str, ...]:
    """Only where the ranks differ: then the branch depends on the data of the rank."""
    if len(set(map(frozenset, unused.values()))) < 2:
        return ()
    return tuple(f"rank {rank} skipped {_listed(sorted(names))}" for rank, names in unused.items())


def _count(names: list[str]) -> str:
    return f"{len(names)} parameter{'s' if len(names) != 1 else ''}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more

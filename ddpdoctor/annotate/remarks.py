"""Lines that only the source shows, beside those that were seen: where what was decided is made.

What the ranks have shown is proven or not by what they did. These lines say where a person would
mend it: the option that nobody passes, the value that a condition asks for, the statement by which
a rank went on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from ddpdoctor.annotate.naming import PROVEN
from ddpdoctor.annotate.source import Sources
from ddpdoctor.annotate.text import Function, Text, called, read
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.lint.engine.libraries import Library
from ddpdoctor.lint.linter import imported_of

Remark = Callable[[Finding, Sources], Finding]
Wanted = Callable[[Text, ast.Call], bool]
_MOST = 4
_CALLERS = 3
_PARTING = ("DDP307", "DDP310", "DDP505", "DDP506")
"""What parts weights by what no rank has written down: a step left out, a draw, an average."""
_PARTED = "that the ranks' models differ is proven; why is concluded from the source"


def remarked(finding: Finding, sources: Sources) -> Finding:
    """The finding, with what the source adds to it."""
    remark = _REMARKS.get(finding.title)
    return remark(finding, sources) if remark is not None else finding


def _with(finding: Finding, lines: Iterator[tuple[Text, ast.AST, str]], *, first: bool) -> Finding:
    known = {each.place for each in finding.places}
    more: list[RankPlace] = []
    for text, node, doing in lines:
        place = _place(text, node)
        if place not in known and len(more) < _MOST:
            known.add(place)
            more.append(RankPlace(ranks=finding.ranks, place=place, doing=doing))
    places = (*more, *finding.places) if first else (*finding.places, *more)
    return finding.model_copy(update={"places": places})


def _place(text: Text, node: ast.AST) -> Place:
    function = text.function(node)
    return Place(text.file, getattr(node, "lineno", 0), function.name if function else "<module>")


def _texts(finding: Finding) -> Iterator[Text]:
    files = dict.fromkeys(p.place.file for p in finding.places if p.place is not None)
    for file in files:
        if (text := read(file)) is not None:
            yield text


def _statements(places: Iterable[RankPlace]) -> Iterator[tuple[Text, ast.stmt, int]]:
    """The statements of some places, each with its file and the line."""
    for at in places:
        text = read(at.place.file) if at.place is not None else None
        node = text.at(at.place.line) if text is not None and at.place is not None else None
        if text is not None and node is not None and at.place is not None:
            yield text, node, at.place.line


def _option(finding: Finding, sources: Sources) -> Finding:
    """The line that declares --local-rank."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text in _texts(finding):
            for node in _declaring(text, "local_rank"):
                yield text, node, "declares it"

    return _with(finding, lines(), first=True)


def _declaring(text: Text, option: str) -> Iterator[ast.Call]:
    """The calls that declare an option of the command line, by the name of its attribute."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Call) and any(
            isinstance(a, ast.Constant)
            and str(a.value).startswith("-")
            and str(a.value).lstrip("-").replace("-", "_") == option
            for a in node.args
        ):
            yield node


def _never_joined(finding: Finding, sources: Sources) -> Finding:
    """What decides that init_process_group is not called, and where that is made."""
    files = [text.file for text in _texts(finding)]
    texts = [*filter(None, map(read, (*files, *imported_of(files))))]

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text in texts:
            for call in ast.walk(text.tree):
                name = call.func if isinstance(call, ast.Call) else None
                if getattr(name, "attr", getattr(name, "id", "")) != "init_process_group":
                    continue
                for parent in text.around(call):
                    if isinstance(parent, ast.If):
                        yield text, parent, "decides whether to join"
                        for origin in text.origins(parent.test):
                            yield text, origin, "and this is where that comes from"
                        yield from _options(texts, parent.test)

    return _with(finding, lines(), first=True)


def _options(texts: list[Text], test: ast.expr) -> Iterator[tuple[Text, ast.AST, str]]:
    """Where the options are declared that a condition asks for."""
    asked = {each.attr for each in ast.walk(test) if isinstance(each, ast.Attribute)}
    for text in texts:
        for option in sorted(asked):
            for node in _declaring(text, option):
                yield text, node, "declares the option"


def _stop(finding: Finding, sources: Sources) -> Finding:
    """What a condition that differs asks for."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, _ in _statements(finding.places[:1]):
            test = next(
                (p.test for p in (node, *text.around(node)) if isinstance(p, ast.If | ast.While)),
                None,
            )
            for origin in text.origins(test, 2) if test is not None else ():
                yield text, origin, "what it asks for"

    return _with(finding, lines(), first=False)


def _skip(finding: Finding, sources: Sources) -> Finding:
    """The statement by which the rank went on to the next round."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, line in _statements(finding.places):
            loop = next((p for p in text.around(node) if isinstance(p, ast.For | ast.While)), None)
            for each in ast.walk(loop) if loop is not None else ():
                if isinstance(each, ast.Continue) and each.lineno >= line:
                    yield text, each, "goes on with the next round"

    return _with(finding, lines(), first=True)


def _left_out(finding: Finding, sources: Sources) -> Finding:
    """The early return of what does not come of that call."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, _ in _statements(finding.places[:1]):
            function = text.function(node)
            for each in _not_made_of(function, node) if function is not None else ():
                if text.function(each) is function:
                    yield text, each, "returns what does not depend on it"

    concluded = finding.model_copy(update={"evidence": (*finding.evidence, PROVEN)})
    return _with(concluded, lines(), first=True)


def _not_made_of(function: Function, first: ast.stmt) -> Iterator[ast.Return]:
    """The returns behind a statement of what is surely not computed from what it has made."""
    inside = (each for each in ast.walk(function) if isinstance(each, ast.stmt))
    behind = (each for each in inside if each.lineno >= first.lineno)
    made: set[str] = set()
    for each in sorted(behind, key=lambda each: each.lineno):
        is_of_it = each is first or not made.isdisjoint(_names(each))
        if isinstance(each, ast.Return) and each.value is not None and not is_of_it:
            yield each
        if is_of_it:
            set_ = (n for n in ast.walk(each) if isinstance(getattr(n, "ctx", None), ast.Store))
            changed = [each] if isinstance(each, ast.Expr) else set_  # `kept.append(x)`
            made.update(name for node in changed for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _set_order(finding: Finding, sources: Sources) -> Finding:
    """The set whose order decides."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, _ in _statements(finding.places[:1]):
            function = node if isinstance(node, Function) else text.function(node)
            for each in ast.walk(function) if function is not None else ():
                if _is_unordered(each):
                    yield text, each, "has no order that processes share"
                elif isinstance(each, ast.For):
                    for origin in text.origins(each.iter):
                        if any(map(_is_unordered, ast.walk(origin))):
                            yield text, origin, "has no order that processes share"

    return _with(finding, lines(), first=True)


def _is_unordered(node: ast.AST) -> bool:
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(attr="listdir" | "iterdir" | "scandir" | "glob")):
            return True
    return False


def _chosen(finding: Finding, sources: Sources) -> Finding:
    """A save under a comparison of that number is a decision; one under none is a record."""
    for at in finding.places:
        for depth, frame in reversed([*enumerate(at.stack)]):
            text = read(frame.file)
            node = text.at(frame.line) if text is not None else None
            if text is None or node is None:
                continue
            for parent in text.around(node):
                if isinstance(parent, Function):
                    break
                if isinstance(parent, ast.If) and _compares(text, parent.test, at.stack[:depth]):
                    place = RankPlace(ranks=at.ranks, place=_place(text, parent), doing="decides")
                    seen = (each for each in finding.places if each is at or each.doing != at.doing)
                    return finding.model_copy(
                        update={"severity": "warning", "places": (*seen, place)}
                    )
    return finding


def _compares(text: Text, test: ast.expr, way: Sequence[Place]) -> bool:
    """Whether a number is compared with a best one so far: none is a constant, or counts steps.

    There, or where what is asked was set.
    """
    made = (each.value for each in text.origins(test, 1) if isinstance(each, ast.Assign))
    for each in (part for value in (test, *made) for part in ast.walk(value)):
        if isinstance(each, ast.Compare) and isinstance(
            each.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE
        ):
            sides = (each.left, *each.comparators)
            if not any(isinstance(s, ast.Constant) or _counts(text, s, way) for s in sides):
                return True
    return any(_compares(*given) for given in _given(text, test, way))


def _given(
    text: Text, test: ast.expr, way: Sequence[Place]
) -> Iterator[tuple[Text, ast.expr, Sequence[Place]]]:
    """What a function was given of that which is asked, in the line of `way` that has called it."""
    function = text.function(test)
    if function is None or not way:
        return
    *outer, caller = way
    calling = read(caller.file)
    statement = calling.at(caller.line) if calling is not None else None
    if calling is None or statement is None:
        return
    for each in ast.walk(test):
        if isinstance(each, ast.Name):
            for value in calling.given(statement, function, each.id):
                yield calling, value, outer


def _counts(text: Text, value: ast.expr, way: Sequence[Place]) -> bool:
    """Whether a variable is but counted on, by a constant or a loop: alike on all that count alike.

    What a function is given is looked for in the line of `way` that has called it.
    """
    match value:
        case ast.BinOp(left=one, right=ast.Constant()) | ast.BinOp(left=ast.Constant(), right=one):
            return _counts(text, one, way)
        case ast.Name(id=name):
            function = text.function(value)
            within: ast.AST = function or text.tree
            stores: list[ast.expr] = [
                each
                for each in ast.walk(within)
                if isinstance(each, ast.Name) and each.id == name and _is_stored(each)
            ]
            if not stores and function is not None and way:
                return _is_given_a_count(function, name, way)
        case ast.Attribute(attr=name):
            stores = [
                each
                for each in ast.walk(text.tree)
                if isinstance(each, ast.Attribute) and each.attr == name and _is_stored(each)
            ]
        case _:
            return False
    ways = [_is_counted_on(text, each) for each in stores]
    return True in ways and False not in ways


def _is_stored(value: ast.Name | ast.Attribute) -> bool:
    return isinstance(value.ctx, ast.Store)


def _is_counted_on(text: Text, stored: ast.expr) -> bool | None:
    """Whether a loop or a sum with a constant counts there; None if it begins with a constant."""
    match parent := text.parents.get(stored):
        case ast.AugAssign(value=ast.Constant()) | ast.For(iter=ast.Call(func=ast.Name("range"))):
            return True
        case ast.Assign(value=ast.Constant()):
            return None
        case ast.Tuple(elts=[first, *_]) if first is stored:
            loop = text.parents.get(parent)
            made = loop.iter if isinstance(loop, ast.For) else None
            return isinstance(made, ast.Call) and called(made) == "enumerate"
    return False


def _is_given_a_count(function: Function, name: str, way: Sequence[Place]) -> bool:
    *outer, caller = way
    text = read(caller.file)
    statement = text.at(caller.line) if text is not None else None
    if text is None or statement is None:
        return False
    given = list(text.given(statement, function, name))
    return bool(given) and all(_counts(text, each, outer) for each in given)


def _calling(wanted: Wanted, doing: str) -> Remark:
    """The calls of a kind in the files that the finding is about, else in what these import."""

    def remark(finding: Finding, sources: Sources) -> Finding:
        own = list(_texts(finding))
        imported = filter(None, map(read, imported_of([text.file for text in own])))
        for texts in (own, imported):
            lines = [
                (text, node, doing)
                for text in texts
                for node in ast.walk(text.tree)
                if isinstance(node, ast.Call) and wanted(text, node)
            ]
            if lines:
                return _with(finding, iter(lines), first=False)
        return finding

    return remark


def _counted(finding: Finding, sources: Sources) -> Finding:
    """Where the number is made by which a sum is divided."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, line in _statements(finding.places[:1]):
            for each in ast.walk(node):
                if not isinstance(each, ast.BinOp) or not isinstance(each.op, ast.Div):
                    continue
                if each.lineno <= line <= (each.end_lineno or line):
                    for origin in text.origins(each.right, 1):
                        yield text, origin, "counts its own terms"

    return _with(finding, lines(), first=False)


def _synchronised(finding: Finding, sources: Sources) -> Finding:
    """Where it is decided which micro-batches do not synchronise, and who calls the step."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text in _texts(finding):
            for node in ast.walk(text.tree):
                is_held = isinstance(node, ast.Attribute) and node.attr == "no_sync"
                if is_held and (test := _nearest_test(text, node)) is not None:
                    yield text, test, "decides which do not synchronise"

    return _called_from(_with(finding, lines(), first=False), sources)


def _skipped_by(finding: Finding, sources: Sources) -> Finding:
    """The condition under which the model uses what was skipped."""
    conditions = [
        sources.condition(each) for each in finding.places if each.phase == "forward" and each.place
    ]
    known = {each.place for each in finding.places}
    more = [
        RankPlace(ranks=finding.ranks, place=place, doing="decides whether it does")
        for place in dict.fromkeys(conditions)
        if place is not None and place not in known
    ]
    return finding.model_copy(update={"places": (*finding.places, *more)})


def _built_apart(finding: Finding, sources: Sources) -> Finding:
    """What the ranks answered differently when they built it, by the source."""
    known = {each.place for each in finding.places}
    more = [each for each in sources.built_apart(finding.places[0]) if each.place not in known]
    return finding.model_copy(update={"places": (*finding.places, *more[:_MOST])})


def _rates_set(finding: Finding, sources: Sources) -> Finding:
    """The lines that set what has parted come first: the step only goes by it."""
    known = {each.place for each in finding.places}
    found = [each for at in finding.places for each in sources.rates_set_apart(at)]
    more = [each for each in dict.fromkeys(found) if each.place not in known]
    return finding.model_copy(update={"places": (*more[:_MOST], *finding.places)})


def _nearest_test(text: Text, node: ast.AST) -> ast.expr | None:
    """The innermost condition that a node stands under, within its loop and function."""
    for parent in text.around(node):
        if isinstance(parent, ast.If | ast.IfExp):
            return parent.test
        if isinstance(parent, ast.For | ast.While | Function):
            return None
    return None


def _called_from(finding: Finding, sources: Sources) -> Finding:
    """Who calls the function that does it, as the program runs in the head."""
    calls = sources.calls(finding.places[0])
    known = {each.place for each in finding.places}
    more = tuple(
        RankPlace(ranks=finding.ranks, place=each, doing="calls it")
        for each in calls[:_CALLERS]
        if each not in known
    )
    return finding.model_copy(update={"places": (*finding.places, *more)})


def _of_the_wrapper(finding: Finding, sources: Sources) -> Finding:
    """Where what was saved was asked for its state, if it was in another statement."""

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, _ in _statements(finding.places[1:]):
            names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            for origin in (made for each in names for made in text.origins(each)):
                for each in ast.walk(origin):
                    if isinstance(each, ast.Call) and called(each) == "state_dict":
                        yield text, each, "asks for what is saved"

    return _with(finding, lines(), first=False)


def _given_to_some(finding: Finding, sources: Sources) -> Finding:
    """Where what was nothing on these ranks is set under a condition: others may have more."""
    if "NoneType" not in finding.raised and "UnboundLocalError" not in finding.raised:
        return finding

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        for text, node, _ in _statements(finding.places[:1]):
            for part in ast.walk(node) if isinstance(node, ast.Expr | ast.Assign) else ():
                for origin in text.origins(part) if isinstance(part, ast.Name) else ():
                    if (test := _nearest_test(text, origin)) is not None:
                        yield text, test, "decides whether a rank has it"
                        yield text, origin, "gives it"

    return _with(finding, lines(), first=False)


def _spawned(finding: Finding, sources: Sources) -> Finding:
    """The function within a function that is handed over, by the name that Python tells of it."""
    named = re.search(r".*\b(\w+)\.<locals>\.([\w<>]+)", finding.raised)
    files = [text.file for text in _texts(finding)]

    def lines() -> Iterator[tuple[Text, ast.AST, str]]:
        outer, inner = named.groups() if named is not None else ("", "")
        for text in filter(None, map(read, (*files, *imported_of(files)))):
            for function in text.functions(outer):
                for each in _made_in(function):
                    name = "<lambda>" if isinstance(each, ast.Lambda) else getattr(each, "name", "")
                    if name == inner:
                        yield text, each, "is made in a function, and no child finds it there"

    return _with(finding, lines(), first=False)


def _made_in(function: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, and not in one within it."""
    for each in ast.iter_child_nodes(function):
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _made_in(each)


def _is_called(name: str) -> Wanted:
    return lambda text, call: called(call) == name


@cache
def _library() -> Library:
    return Library()


def _exchanges(text: Text, call: ast.Call) -> bool:
    """Whether a call is one by which numbers come to other ranks, as libraries are known."""
    effect = _library().find(text.resolve(call.func))
    shares = effect is not None and any(
        effect.option(role) for role in ("shares", "gives", "fills")
    )
    return effect is not None and effect.does == "collective" and shares


def _passes(option: str, value: bool) -> Wanted:
    return lambda text, call: any(
        each.arg == option and isinstance(each.value, ast.Constant) and each.value.value is value
        for each in call.keywords
    )


def _of_ranks(finding: Finding, sources: Sources) -> Finding:
    """Where a sum is divided by the number of ranks, after it or before, no harm is done."""
    if finding.certainty == "proven" and sources.sums_parts(finding.places[0]):
        return finding.model_copy(
            update={
                "severity": "info",
                "cause": f"what is summed at {finding.places[0].place} is the same on all ranks "
                "already, and was divided by their number before: the sum gives back what was "
                "there, and harms nothing.",
                "cure": Cure(
                    text="Leave both out, the division and the sum, or neither: one alone would "
                    "make the number wrong."
                ),
            }
        )
    return finding.model_copy(update={"severity": "info"}) if sources.divides(finding) else finding


def _averaged(finding: Finding, sources: Sources) -> Finding:
    """A sum that is divided by the number of ranks is a mean of means."""
    is_mean = sources.divides(finding)
    return finding.model_copy(update={"severity": "warning"}) if is_mean else finding


def _undivided(finding: Finding, sources: Sources) -> Finding:
    """The sum of means itself is told, where the source shows nothing that divides it."""
    is_sum = finding.is_suspicion and sources.leaves(finding.places[0])
    return finding.model_copy(update={"severity": "warning"}) if is_sum else finding


def _scaled(finding: Finding, sources: Sources) -> Finding:
    """Where lint says of the same backward pass that its loss is scaled by the number of ranks.

    Or the source divides by it what was summed up over the ranks with its graph.
    """
    if not finding.is_suspicion:
        return finding
    own = [(at.place, (at.place.file, at.place.line)) for at in finding.places if at.place]
    said = sources.said(finding.code, [place for place, _ in own])
    lines = {line for _, line in own}
    is_said = any((each.path, each.line) in lines for of in said for each in of.related)
    was_summed = len(finding.places) > 1  # lint takes the quotient for the average, as it is
    is_said = is_said or (was_summed and bool(sources.goes_back_in_parts(finding.places[0])))
    return finding.model_copy(update={"severity": "warning"}) if is_said else finding


def _in_parts(finding: Finding, sources: Sources) -> Finding:
    """Where a loss was divided by the number of ranks, and by no weight that is the same number."""
    lines = sources.goes_back_in_parts(finding.places[0])
    known = {each.place for each in finding.places}
    divides = [sources.place(*each) for each in dict.fromkeys(lines) if each[1]]
    more = [
        RankPlace(ranks=finding.ranks, place=each, doing="divides it by the number of ranks")
        for each in divides
        if each not in known
    ]
    places = (*finding.places, *more[:_MOST])
    told = finding.model_copy(update={"severity": "warning", "places": places})
    return told if lines else finding


def _never_called(finding: Finding, sources: Sources) -> Finding:
    """Lines that would exchange gradients: who has such a line means to."""
    found = _calling(_exchanges, "would exchange, and is never called")(finding, sources)
    is_meant = len(found.places) > len(finding.places)
    return found.model_copy(update={"severity": "warning"}) if is_meant else finding


def _as_read(finding: Finding, sources: Sources) -> Finding:
    """What was seen may be meant: it is told where lint calls one of its lines by the same code."""
    if not finding.is_suspicion:
        return finding
    own = [at.place for at in finding.places if at.place is not None]
    said = {(each.path, each.line) for each in sources.said(finding.code, own)}
    is_said = any((each.file, each.line) in said for each in own)
    return finding.model_copy(update={"severity": "warning"}) if is_said else finding


def _as_it_came(finding: Finding, sources: Sources) -> Finding:
    """That models part is proven; why is concluded where lint names one thing that parts them."""
    own = [at.place for at in finding.places if at.place is not None]
    said = [
        each for code in _PARTING for each in sources.said(code, own) if each.severity != "info"
    ]
    if finding.code != "DDP300" or len({each.code for each in said}) != 1:
        return finding
    told = _as_lint_has_it(finding.model_copy(update={"code": said[0].code}), sources)
    return told.model_copy(
        update={
            "title": said[0].name,
            "certainty": "evidence",
            "cause": f"{finding.cause} By the source, {said[0].message} (line {said[0].line}).",
            "cure": Cure(text=said[0].help) if said[0].help else finding.cure,
            "evidence": (*finding.evidence, _PARTED),
        }
    )


def _as_said(finding: Finding, sources: Sources) -> Finding:
    """What was seen may be meant: it is told with the lines to which lint gives the same code."""
    if not finding.is_suspicion:
        return finding
    told = _as_lint_has_it(finding, sources)
    is_said = len(told.places) > len(finding.places)
    return told.model_copy(update={"severity": "warning"}) if is_said else finding


def _as_lint_has_it(finding: Finding, sources: Sources) -> Finding:
    """The lines that lint names under the same code."""
    own = [at.place for at in finding.places if at.place is not None]
    more = [
        RankPlace(ranks=finding.ranks, place=sources.place(path, line), doing=doing)
        for said in sources.said(finding.code, own)
        for path, line, doing in (
            (said.path, said.line, said.message),
            *((each.path, each.line, each.message) for each in said.related),
        )
    ]
    return finding.model_copy(update={"places": (*more[:_MOST], *finding.places)})


def _decides(finding: Finding, sources: Sources) -> Finding:
    """With the line at which all ranks go by what one alone has: then it is no note."""
    own = {(p.place.file, p.place.line) for p in finding.places if p.place is not None}
    said = sources.said("DDP416", [each.place for each in finding.places if each.place is not None])
    more = tuple(
        RankPlace(
            ranks=finding.ranks,
            place=sources.place(each.path, each.line),
            doing="all ranks go by it",
        )
        for diagnostic in said
        if (diagnostic.path, diagnostic.line) in own
        for each in diagnostic.related[:1]
    )
    if not more:
        return finding
    return finding.model_copy(update={"severity": "warning", "places": (*finding.places, *more)})


_REMARKS: dict[str, Remark] = {
    "reduced-only-on-root": _decides,
    "local-rank-argument": _option,
    "lone-copies": _never_joined,
    "missing-set-epoch": _calling(
        _is_called("set_epoch"), "calls set_epoch, which does not reach this sampler"
    ),
    "iterable-not-sharded": _calling(_is_called("get_worker_info"), "deals out among workers"),
    "uneven-batches": _calling(_passes("even_batches", False), "lets the ranks' batches be uneven"),
    "marked-ready-twice": _calling(_is_called("checkpoint"), "runs its function again in backward"),
    "local-stop-decision": _stop,
    "left-out-of-backward": _left_out,
    "rank-local-skip": _skip,
    "unordered-registration": _set_order,
    "numbered-apart": _as_lint_has_it,
    "gathered-without-gradient": _as_read,
    "same-noise-everywhere": _as_read,
    "padded-evaluation": _as_read,
    "own-statistics": _as_read,
    "own-attributes": _as_said,
    "module-prefix": _of_the_wrapper,
    "metric-not-reduced": _chosen,
    "reduced-twice": _of_ranks,
    "plain-average": _averaged,
    "sum-of-means": _undivided,
    "nothing-exchanged": _never_called,
    "batch-size-meaning": _scaled,
    "averaged-twice": _in_parts,
    "mean-of-means": _counted,
    "accumulation-off-by-one": _synchronised,
    "accumulation-syncs-every-step": _calling(
        _is_called("no_sync"), "would leave it out, and never does"
    ),
    "rank-divergent-path": _as_lint_has_it,
    "late-parameter": _called_from,
    "exception": _given_to_some,
    "unpicklable-spawn-arguments": _spawned,
    "different-models": _built_apart,
    "silent-divergence": _as_it_came,
    "rates-apart": _rates_set,
    "unused-parameters": _skipped_by,
    "static-graph-changed": _skipped_by,
}

"""Checkpoint written in place.

## What it does
Finds `torch.save` straight to the file that the same project resumes from, with no rename; where
the job is told which file that is, to the only one that has all that it takes up. And the only
checkpoint that is kept, where it is removed before the next one is written.

## Why is this bad?
A job killed in the middle of the write (pre-emption, out of memory, wall clock) leaves half a file
where the old checkpoint was: both are lost.

## Example
```python
torch.save(state, "last.pt")
...
if os.path.exists("last.pt"):
    state = torch.load("last.pt")
```

## Use instead
```python
torch.save(state, "last.pt.tmp")
os.replace("last.pt.tmp", "last.pt")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise, takewhile

from ddpdoctor.lint.edits import end_of, replace, start_of
from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    Const,
    Lib,
    Ref,
    Tensor,
    Term,
    Value,
    has_identity,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import is_distributed
from ddpdoctor.lint.engine.queries.paths import is_one_path, same_path
from ddpdoctor.lint.engine.queries.resuming import files, is_one_file, taken_up
from ddpdoctor.lint.engine.queries.states import file_events, is_state, parts
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import About, Edit, Fix, Hit, Related

ABOUT = About(code="DDP503", name="torn-save", confidence="likely")

_ALL = ("Exception", "BaseException")
Saved = tuple[Run, Event, Way, bool]
"""Where and how it is saved, and whether only where nothing was there to be loaded."""


def check(run: Run) -> Iterator[Hit]:
    """Yield saves over the file that a resume will need."""
    if run.is_entry and not is_distributed(run):
        return
    yield from _removed_before(run)
    told: set[int] = set()
    for where, save, way, is_new in _pairs(run):
        if id(save.node) in told or not _is_repeated(where, way) or _is_moved(run, save):
            continue
        if _is_of_this_process(save):
            continue
        if _is_copied(where, save, way) or _is_saved_before(where, save, way):
            continue
        if not is_new and _is_made_again(run, save, way):
            continue
        told.add(id(save.node))
        path = _path_node(save)
        call = _call_that_names_it(where, save, path, way)
        is_named = call is None and "file" not in save.values
        shown = f"`{text(path, 30)}`" if is_named else "this file"
        yield Hit(
            call.node if call is not None else save.node,
            f"killed while writing, this save leaves {shown} torn, and who finds it loads it"
            if is_new
            else f"killed while writing, this save destroys the only copy of {shown}",
            help="write to a temporary file beside it, then os.replace() it",
            fix=_fix(run, save, path),
            path=call.path if call is not None else save.path,
        )


def _is_of_this_process(save: Event) -> bool:
    """Whether no other process comes to such a name: none will look for the file."""
    parts = within(save.values.get("path", NONE).what)
    return any(isinstance(x, Term) and x.op == "local" and x.args[0] in _NUMBERS for x in parts)


_NUMBERS = ("id", "os.getpid", "uuid.uuid1", "uuid.uuid4")


def _removed_before(run: Run) -> Iterator[Hit]:
    """Removals of what a round before has saved, and nothing else, before it is saved anew."""
    told: set[int] = set()
    for save, at in file_events(run, "save") if run.is_entry else ():
        path = save.values.get("path", NONE)
        state = save.values.get("object", NONE)
        if not _loops(at) or not has_identity(path.what) or not _holds_a_state(run, state):
            continue
        for gone, to in events(run.root, "remove"):
            is_before = any(x.seq is at[-1].seq and x.index < at[-1].index for x in to)
            of = {each.what for each in run.vm.store.options(gone.values.get("path", NONE))}
            if not is_before or id(gone.node) in told or path.what not in of or len(of) < 2:
                continue
            if all(isinstance(each, Const) and not each.value for each in of - {path.what}):
                told.add(id(gone.node))
                yield Hit(
                    gone.node,
                    "killed while writing the next one, the job has lost this one too",
                    notes=(Related.at(save.place, "the next one is written here"),),
                    help="remove it once the next one has been written",
                    path=gone.path,
                )


def _holds_a_state(run: Run, saved: Value) -> bool:
    """Whether it is what an object has given as its state, or has that in it."""
    return any(is_state(each) for _, each in parts(run, saved))


def _pairs(run: Run) -> Iterator[Saved]:
    """Saves of files that this run, or another function of the file, begins from."""
    mine = file_events(run, "save", "load")
    if not mine:
        return
    for save, at, to in taken_up(run) if run.is_entry else ():
        if not _has_failed(to, at):
            yield run, save, at, False
    elsewhere = [each for before in run.earlier for each in file_events(before, "load")]
    for number, (save, at) in enumerate(mine):
        # What the same process reads back is its own: no later job hangs on it.
        loads = [
            (load, to)
            for load, to in mine[:number]
            if not _has_failed(to, at) and not (_loops(at) & _loops(to) and _may_follow(at, to))
        ]
        if not any(_loads(run, load, save) and _may_follow(at, to) for load, to in mine[number:]):
            loads += elsewhere
        found = [(load, to) for load, to in loads if _loads(run, load, save)]
        if found:
            yield run, save, at, all(_finds_nothing(to, at) for _, to in found)
    for before in run.earlier:
        for save, at in file_events(before, "save"):
            if any(_loads(run, load, save) for load, _ in mine):
                yield before, save, at, False


def _has_failed(load: Way, save: Way) -> bool:
    """Whether it is saved because loading has failed, whatever was wrong: nothing can be lost."""
    choice, caught = _parted(load, save)
    if choice is None or not isinstance(choice.node, ast.Try):
        return False
    bodies = [arm.body for arm in choice.arms]
    handlers = zip(bodies[1:], choice.node.handlers, strict=False)
    handler = next((each for body, each in handlers if body is caught), None)
    return handler is not None and (handler.type is None or text(handler.type) in _ALL)


def _finds_nothing(load: Way, save: Way) -> bool:
    """Whether it is saved where there was nothing to load: it was looked for, or missed."""
    choice, _ = _parted(load, save)
    is_tried = choice is not None and isinstance(choice.node, ast.Try)
    return choice is not None and (is_tried or choice.condition.agree.cause == "disk")


def _parted(load: Way, save: Way) -> tuple[Choice | None, Seq | None]:
    """The choice of which one arm loads, and another saves; and that other one."""
    for (at, mine), (to, other) in zip(pairwise(load), pairwise(save), strict=False):
        if at.node is not to.node:
            break
        if isinstance(at.node, Choice) and mine.seq is not other.seq:
            is_tried = isinstance(at.node.node, ast.Try)
            if not is_tried or at.node.arms[0].body is mine.seq:
                return at.node, other.seq
    return None, None


def _may_follow(one: Way, other: Way) -> bool:
    """Whether a process may do both: not on two ways of which it goes one, once."""
    for mine, theirs in zip(one, other, strict=False):
        if mine.node is not theirs.node:
            return mine.seq is theirs.seq or bool(_loops(one) & _loops(other))
    return True


def _loops(way: Way) -> set[int]:
    return {id(step.node) for step in way if isinstance(step.node, Loop)}


def _loads(run: Run, load: Event, save: Event) -> bool:
    if (load.kind, save.kind) != ("load", "save"):
        return False
    return any(is_one_file(one, other) for one in files(run, load) for other in files(run, save))


def _is_repeated(run: Run, way: Way) -> bool:
    """Whether a loop overwrites the file again and again, as far as anybody can see."""
    return not run.is_entry or any(isinstance(step.node, Loop) for step in way)


def _is_made_again(run: Run, save: Event, way: Way) -> bool:
    """Whether a function computes all of it, with no loop: no training hangs on it."""
    saved = save.values.get("object", NONE)
    is_made = isinstance(saved.what, Tensor) or _is_packed(run, saved)
    return is_made and not any(isinstance(step.node, Loop) for step in way)


def _is_packed(run: Run, value: Value, depth: int = 6) -> bool:
    """Whether a method gives it for what a library has made here, and for nothing else."""
    if not depth:
        return False
    several = run.vm.store.options(value)
    if len(several) > 1:
        return all(_is_packed(run, each, depth - 1) for each in several)
    what = value.what
    if isinstance(what, Term) and what.op == "result":
        made = run.vm.made.get(what)
        of = [each for each in made.of if each.what != what.args[0]] if made is not None else []
        is_packed = bool(of) and all(_is_packed(run, each, depth - 1) for each in of)
        return isinstance(what.args[0], Lib) or is_packed
    if not isinstance(what, Term) or what.op != "call":
        return False
    given = [Value(each) for each in what.args[2:] if isinstance(each, Const | Ref | Term)]
    packed = [each for every in given for _, each in parts(run, every)]
    inner = [each for each in packed if run.vm.type_of(each) not in ("list", "tuple")]
    return bool(inner) and all(_is_packed(run, each, depth - 1) for each in inner)


def _is_moved(run: Run, save: Event) -> bool:
    """Whether the file that is there is moved away first, or the new one into its place."""
    return any(
        is_one_path(event.values.get(role, NONE), save.values.get("path", NONE))
        for each in (run, *run.earlier)
        for event, _ in file_events(each, "rename")
        for role in ("path", "to")
    )


def _is_copied(run: Run, save: Event, way: Way) -> bool:
    """Whether it is copied elsewhere each time that it is saved: one of both is always whole."""
    return any(
        there[-1].seq is way[-1].seq
        and there[-1].index > way[-1].index
        and same_path(copy.values.get("path"), save.values.get("path"))
        for copy, there in events(run.root, "copy_file")
    )


def _is_saved_before(run: Run, save: Event, way: Way) -> bool:
    """Whether the same was saved under another name each time, just before: that is whole by then.

    `way` may go deeper than what was saved before, but into no loop.
    """
    inner = takewhile(lambda step: not isinstance(step.node, Loop), reversed(way[:-1]))
    around = {id(step.seq): step.index for step in (way[-1], *inner)}
    return any(
        there[-1].index < around.get(id(there[-1].seq), 0)
        and _is_made_alike(run, other.values.get("object"), save.values.get("object"))
        and not same_path(other.values.get("path"), save.values.get("path"))
        for other, there in file_events(run, "save")
    )


def _is_made_alike(run: Run, one: Value | None, other: Value | None) -> bool:
    """Whether two are one thing, or made by the same lines."""
    if one is None or other is None:
        return False
    first, second = run.vm.object(one), run.vm.object(other)
    if first is None or second is None:
        return one.what == other.what and has_identity(one.what)
    return first.node is second.node


def _path_node(save: Event) -> ast.AST:
    node = save.node
    path = argument(node, 1, "f") if isinstance(node, ast.Call) else None
    return path if path is not None else node


def _call_that_names_it(run: Run, save: Event, path: ast.AST, way: Way) -> Called | None:
    """The call of helpers that hand the path on to where it is saved, whatever it is."""
    found: Called | None = None
    node, file = save.node, save.path
    for call in [step.node for step in reversed(way) if isinstance(step.node, Called)]:
        given = _given(call.node, _function_around(run, file, node), path)
        if given is None:
            break
        found, path, node, file = call, given, call.node, call.path
    return found


def _function_around(run: Run, file: str, node: ast.AST) -> ast.FunctionDef | None:
    source = run.source(file)
    for each in source.nodes if source is not None else ():
        if isinstance(each, ast.FunctionDef) and node in ast.walk(each):
            return each
    return None


def _given(call: ast.AST, function: ast.FunctionDef | None, path: ast.AST) -> ast.expr | None:
    """What a call gives for the path, where that is a parameter or stands in the stars."""
    if function is None or not isinstance(call, ast.Call):
        return None
    if isinstance(path, ast.Call):
        is_starred = any(isinstance(each, ast.Starred) for each in path.args)
        return (argument(call, 1, "f") or call) if is_starred else None
    names = [each.arg for each in function.args.args]
    if not isinstance(path, ast.Name) or path.id not in names:
        return None
    is_bound = isinstance(call.func, ast.Attribute) and names[0] in ("self", "cls")
    return argument(call, names.index(path.id) - is_bound, path.id)


def _fix(run: Run, save: Event, path: ast.AST) -> Fix | None:
    """Write beside, then rename; not safe, since it does not fsync."""
    source = run.source(save.path)
    is_name = isinstance(path, ast.Name | ast.Attribute | ast.Constant)
    if source is None or not is_name or "file" in save.values:
        return None
    first, last, _ = source.statement(save.place.line)
    node = save.node
    if (first, last) != (node.lineno, node.end_lineno) or "os" not in source.bindings:  # type: ignore[attr-defined]
        return None
    shown = ast.unparse(path)
    is_text = isinstance(path, ast.Constant) and isinstance(path.value, str)
    place = repr(f"{ast.literal_eval(path)}.tmp") if is_text else f'f"{{{shown}}}.tmp"'
    if not _is_alone(source, node):
        return None
    line = source.lines[first - 1]
    indent = line[: len(line) - len(line.lstrip())]
    after = Edit(*end_of(source, node), f"\n{indent}os.replace({place}, {shown})")
    return Fix((replace(source, path, place), after), safe=False)


def _is_alone(source: Text, node: ast.AST) -> bool:
    """Whether nothing else stands on the lines of a call."""
    (first, column), (last, end) = start_of(source, node)[0], end_of(source, node)[0]
    return not source.lines[first - 1][:column].strip() and not source.lines[last - 1][end:].strip()

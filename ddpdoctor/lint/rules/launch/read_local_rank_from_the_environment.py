"""--local_rank expected as an argument.

## What it does
Finds a script that takes `--local_rank` as an argument and uses it, and never reads LOCAL_RANK.

## Why is this bad?
torchrun does not pass the argument: it sets LOCAL_RANK. The script sees its default, 0 or -1, on
every rank, and all of them take one device or train alone.

## Example
```python
parser.add_argument("--local_rank", type=int, default=0)
```

## Use instead
```python
local_rank = int(os.environ["LOCAL_RANK"])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import OPEN, Value
from ddpdoctor.lint.engine.queries.doing import is_of_one_process
from ddpdoctor.lint.engine.queries.wrapping import mentioned
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP112", name="local-rank-argument", confidence="likely")

_FLAGS = ("--local_rank", "--local-rank")
# Their launchers pass it.
_FRAMEWORKS = ("deepspeed", "lightning", "accelerate")


def check(run: Run) -> Iterator[Hit]:
    """Yield arguments that torchrun no longer fills, and that somebody reads."""
    options = [event for event, _ in events(run.root, "option") if _is_local_rank(event)]
    if not options or _reads_the_environment(run):
        return
    for event in options:
        if _is_filled(run, event):
            continue  # who starts the ranks here numbers them, too
        declares = run.source(event.path)
        is_shared = event.path != run.path
        own_script = declares if is_shared and declares and declares.has_main else None
        if own_script is not None and _is_read(own_script, event.name):
            continue  # its own run judges
        if is_shared and is_of_one_process(run):
            continue  # the ranks of other programs have the argument
        if _has_unseen_readers(run) or any(_is_read(text, event.name) for text in _texts(run)):
            yield Hit(
                event.node,
                "torchrun does not pass --local_rank: it sets LOCAL_RANK in the environment",
                help='read int(os.environ["LOCAL_RANK"])',
                path=event.path,
                stands=run.is_entry,
            )


def clears(run: Run) -> Iterator[tuple[ast.AST, str]]:
    """The arguments that a program fills, or that it reads nowhere, whoever else might."""
    if not run.is_entry or run.spent:
        return
    told = {id(hit.node) for hit in check(run)}
    for event, _ in events(run.root, "option"):
        if _is_local_rank(event) and id(event.node) not in told:
            yield event.node, event.path


def _is_local_rank(event: Event) -> bool:
    given = event.node.args if isinstance(event.node, ast.Call) else []
    return any(isinstance(each, ast.Constant) and each.value in _FLAGS for each in given)


def _reads_the_environment(run: Run) -> bool:
    """Whether the number is taken from the environment: to set it there, or to ask, is not to."""
    own = run.source(run.path)
    if own is None:
        return any(map(_asks_for_it, (event for event, _ in events(run.root, "getenv"))))
    nodes = [*own.nodes, *(each for node in _ran_elsewhere(run) for each in ast.walk(node))]
    passed = {id(each) for node in nodes for each in _passed_by(node)}
    if any(_asks_for_it(e) and id(e.node) not in passed for e, _ in events(run.root, "getenv")):
        return True
    if any(word in own.source.text for word in _FRAMEWORKS):
        return True
    named = [each for each in nodes if _is_the_name(each) and id(each) not in passed]
    # What the program sets itself, in some object, is what it sets it to.
    is_set = any(isinstance(each, ast.Attribute) and _is_stored(each) for each in named)
    return any(not (is_set and isinstance(each, ast.Attribute)) for each in named)


def _asks_for_it(event: Event) -> bool:
    return event.values["name"].is_const("LOCAL_RANK")


def _is_stored(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _ran_elsewhere(run: Run) -> Iterator[ast.AST]:
    """What was run of other files: functions that were called, and what stands beside these."""
    called = [info for info in run.vm.visited.values() if info.module.path != run.path]
    yield from (info.node for info in called)
    for module in {id(info.module): info.module for info in called}.values():
        yield from (each for each in module.text.tree.body if not isinstance(each, _DEFINES))


_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _passed_by(node: ast.AST) -> Iterator[ast.AST]:
    """The name where it is set or asked whether it is there, and what is only compared."""
    match node:
        case ast.Subscript(slice=name, ctx=ast.Store()):
            yield name
        case ast.Compare():
            inside = list(ast.walk(node))
            yield from () if any(isinstance(each, ast.NamedExpr) for each in inside) else inside


def _passed_on(node: ast.AST) -> Iterator[ast.AST]:
    """All that is put into the environment under the name."""
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant("LOCAL_RANK"))], value=value):
            yield from ast.walk(value)


def _objects_in(node: ast.AST) -> Iterator[str]:
    """A name for an object that was made of nothing: a local rank of its own is no argument."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.Call(func=made, args=[], keywords=[])
        ):
            of = ast.unparse(made).rpartition(".")[2]
            if of[:1].isupper() and of != "Namespace":
                yield name


def _is_the_name(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute | ast.Name):
        return getattr(node, "attr", getattr(node, "id", "")) == "LOCAL_RANK"
    return isinstance(node, ast.Constant) and "LOCAL_RANK" in str(node.value)


def _is_filled(run: Run, option: Event) -> bool:
    """Whether the program gives each rank its number itself, in the place of the argument."""
    own = option.values["value"]
    spawns = any(True for _ in events(run.root, "spawn"))
    filled = (
        e.values["value"]
        for e, _ in events(run.root, "set_attribute")
        if e.name == option.name and (spawns or not e.function.endswith(".__init__"))
    )  # where nobody starts ranks here, what an object asks the group for is its own affair
    return any(each.constant is OPEN and not _is_made_of(run, each, own) for each in filled)


def _is_made_of(run: Run, value: Value, argument: Value) -> bool:
    """Whether it is the argument, or made of it: the group may give the same number."""
    if value.why is not None and argument.why is not None and value.why.root != argument.why.root:
        return False
    return argument.what in {value.what, *mentioned(run, value)}


def _has_unseen_readers(run: Run) -> bool:
    """Whether it is a function that nobody calls, of a file whose project is not looked at."""
    return not run.is_entry and len(run.vm.program.loader.files) < 2


def _texts(run: Run) -> Iterator[Text]:
    """The files of a program; of a function that nobody is seen to call, all around it."""
    loader = run.vm.program.loader
    for path in sorted({*run.vm.files, *(() if run.is_entry else loader.files)}):
        text = loader.text(path)
        if text is not None:
            yield text


def _is_read(text: Text, name: str) -> bool:
    """Whether a file reads `args.local_rank`, or `["local_rank"]` of a dictionary of it.

    What only goes into the environment, where the launcher has put nothing there, is not used.
    """
    passed = {id(each) for node in text.nodes for each in _passed_on(node)}
    others = {each for node in text.nodes for each in _objects_in(node)}
    for node in text.nodes:
        if id(node) in passed:
            continue
        match node:
            case ast.Attribute(value=ast.Name(id=owner)) if owner in others:
                continue
            case ast.Attribute(attr=attribute, ctx=ast.Load()) if attribute == name:
                return True
            case ast.Subscript(slice=ast.Constant(value=key), ctx=ast.Load()) if key == name:
                return True
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=key), *_]):
                if key == name:
                    return True
    return False

"""Samplers and loaders of a program: who shards what, who is run through, and what is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter import reading
from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy
from ddpdoctor.lint.engine.interpreter.objects.indexing import OWN_PART
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Choice,
    Event,
    Loop,
    Seq,
    Way,
    caller,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    SAME,
    TRUE,
    Either,
    Many,
    Place,
    Ref,
    Table,
    Tensor,
    Term,
    Tuple,
    Value,
    within,
)
from ddpdoctor.lint.engine.queries.doing import is_distributed, is_of_one_process
from ddpdoctor.lint.engine.queries.wrapping import attributes, computed_from, mentioned, origins

SAMPLER = "DistributedSampler"
LOADER = "DataLoader"
_DEPTH = 3


def made(run: Run, name: str) -> dict[int, Event]:
    """The objects of a library's class that were made, by their number."""
    found: dict[int, Event] = {}
    for event, _ in events(run.root, "new"):
        own = event.values.get("object")
        if event.name.endswith(name) and own is not None and isinstance(own.what, Ref):
            found[own.what.number] = event
    return found


def numbers(value: Value | None) -> set[int]:
    """The objects that a value may be."""
    if value is None:
        return set()
    if isinstance(value.what, Ref):
        return {value.what.number}
    if isinstance(value.what, Either):
        return {number for each in value.what.options for number in numbers(each)}
    return set()


def is_used(run: Run, wanted: set[int], *keeping: str) -> bool:
    """Whether any of these objects goes into what is done, beside events that only keep it."""
    question = " ".join(("used", *keeping))
    used: set[int] | None = run.answers.get(question)
    if used is None:
        others = (event for event, _ in events(run.root) if event.kind not in keeping)
        given = {each for event in others for each in event.values.values()}
        used = {number for each in given for number in may_be(run, each)}
        run.answers[question] = used
    return not wanted.isdisjoint(used)


def may_be(run: Run, value: Value) -> set[int]:
    """The objects that a value may be, or is made of, those of which it is one included."""
    parts = [Value(each) for each in mentioned(run, value)]
    return {n for each in parts for one in run.vm.store.options(each) for n in numbers(one)}


def shards(run: Run) -> dict[int, int]:
    """Loaders that have a distributed sampler, each with its sampler."""
    samplers = made(run, SAMPLER)
    groups = {
        number: numbers(event.values.get("sampler"))
        for number, event in made(run, "BatchSampler").items()
    }
    found: dict[int, int] = {}
    for number, event in made(run, LOADER).items():
        given = numbers(event.values.get("sampler")) | numbers(event.values.get("batch_sampler"))
        given |= {inner for each in given for inner in groups.get(each, ())}
        given |= {inner for each in given for inner in _kept_by(run, each)}
        if own := given & samplers.keys():
            found[number] = min(own)
    return found


def shuffles(samplers: dict[int, Event], sampler: int) -> bool:
    """Whether a sampler does, or whoever starts the program may tell it to."""
    shuffle = samplers[sampler].values.get("shuffle", TRUE)
    is_option = isinstance(shuffle.what, Term) and shuffle.what.op == "option"
    return is_option or shuffle.is_const(True)


def _kept_by(run: Run, sampler: int) -> set[int]:
    """What a sampler of the user's has for its attributes, such as another that it groups."""
    held = attributes(run).get(Ref(sampler), {})
    return {number for value in held.values() for number in numbers(value)}


def dealt(run: Run) -> set[int]:
    """Loaders of which each rank has its own part: by their sampler, or prepared."""
    return shards(run).keys() | prepared(run)


def prepared(run: Run) -> set[int]:
    """Loaders that a library was given to deal out."""
    given = (event.values["object"] for event, _ in events(run.root, "prepare_loader"))
    return {number for each in given for number in numbers(each)}


# --- who is run through


@dataclass(frozen=True, slots=True)
class Pass:
    """A loop over what comes from loaders."""

    loaders: frozenset[int]
    """Those that it may be."""
    event: Event
    way: Way
    trains: bool
    """Whether there is a backward in it, or it hands on batches that are trained on."""

    @property
    def outer(self) -> list[Loop]:
        """The loops around it."""
        return loops(self.way)


def passes(run: Run) -> list[Pass]:
    """The loops over loaders, in order."""
    found: list[Pass] | None = run.answers.get("passes")
    if found is None:
        found = run.answers["passes"] = list(_passes(run))
    return found


def _passes(run: Run) -> Iterator[Pass]:
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    hands_on = any(_yields(event.node) for event, _ in events(run.root, "iterate"))
    fed = _fed(run, trained) if hands_on else set()
    for event, way in events(run.root, "iterate"):
        over = frozenset(
            numbers(event.values.get("over")) | _behind(run, event.values.get("element"), _DEPTH)
        )
        if over:
            begins = next((each for each in way[-1].rest[:1] if isinstance(each, Loop)), None)
            trains = id(begins) in trained or (_yields(event.node) and bool(over & fed))
            yield Pass(over, event, way, trains)


def gone_through(run: Run) -> list[tuple[Event, Way, set[int]]]:
    """The loops over what may be a loader of the program, one of several included."""
    found: list[tuple[Event, Way, set[int]]] | None = run.answers.get("gone through")
    if found is None:
        loaders = made(run, LOADER).keys()
        over = ((each, way, each.values["over"]) for each, way in events(run.root, "iterate"))
        every = (
            (each, way, may_be(run, value) & loaders)
            for each, way, value in over
            if not (isinstance(value.what, Term) and value.what.op == "range")
        )
        found = run.answers["gone through"] = [each for each in every if each[-1]]
    return found


def may_be_trained_on(run: Run) -> set[int]:
    """The loaders that a loop with a backward may go through."""
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    return {
        number
        for _, way, over in gone_through(run)
        if any(id(each) in trained for each in way[-1].rest[:1])
        for number in over
    }


def begun_again(run: Run) -> Iterator[Pass]:
    """Iterators of loaders that are made again and again, and asked for what is trained on."""
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    fed: set[int] | None = None
    for event, way in events(run.root, "begin"):
        over = frozenset(
            numbers(event.values.get("over")) | _behind(run, event.values.get("element"), _DEPTH)
        )
        if over and loops(way):
            fed = _fed(run, trained) if fed is None else fed
            yield Pass(over, event, way, bool(over & fed))


def trained_on(run: Run) -> set[int]:
    """The loaders whose batches a model learns from, whatever loop hands them over."""
    trained = {id(loop) for _, way in events(run.root, "backward") for loop in loops(way)}
    return _fed(run, trained)


def _fed(run: Run, trained: set[int]) -> set[int]:
    """The loaders of which a model is given batches in a loop that trains."""
    return {
        number
        for event, way in events(run.root, "forward", "bare_forward")
        if id(next(reversed(loops(way)), None)) in trained and "no_grad" not in event.scopes
        for value in event.values.values()
        for origin in origins(run, value, "forward")
        for number in _behind(run, origin, _DEPTH)
    }


def _yields(node: ast.AST) -> bool:
    """Whether a loop hands on what it reads, to be used elsewhere."""
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _behind(run: Run, value: Value | None, depth: int) -> set[int]:
    """The loaders that a batch comes from, also as one of a pair."""
    if value is None or not depth:
        return set()
    what = value.what
    if isinstance(what, Tensor):
        loader = run.vm.batches.get(what.site)
        return {loader.number} if loader is not None else set()
    if isinstance(what, Term) and what.op == "element":  # of one of several loaders
        return numbers(Value(what.args[0]))
    items = what.items if isinstance(what, Tuple) else ()
    items = (what.element,) if isinstance(what, Many) else items
    return {number for each in items for number in _behind(run, each, depth - 1)}


def loops(way: Way) -> list[Loop]:
    """The loops on a way, outermost first."""
    return [step.node for step in way if isinstance(step.node, Loop)]


# --- what is read


def is_dealt_out(run: Run, loader: Event) -> bool:
    """Whether the workers of a loader read what is this rank's, or ask which rank they are of."""
    data = loader.values.get("dataset")
    own = data is not None and data.agree.divergent and data.agree.cause not in reading.BY_ACCIDENT
    if data is not None and (own or _holds_own(run, data) or _is_made_of_a_part(run, data)):
        return True
    # What comes of a loop over a rank's own part is that rank's own data.
    causes = ("shard", "data") if is_stream(run, loader) else ("shard",)
    for node, _ in walk(run.vm.workers[loader]):
        if isinstance(node, Choice | Loop):
            deciding = [node.condition if isinstance(node, Choice) else node.count]
        elif isinstance(node, Event) and node.kind in ("sample", "batch", "iterate"):
            deciding = list(node.values.values())
            if is_stream(run, loader) and _is_alike(node):  # what it holds is not gone by
                continue
        else:
            continue
        if any(_is_own(each, causes, _DEPTH) for each in deciding):
            return True
    return False


def _is_alike(sample: Event) -> bool:
    """Whether all ranks are seen to read the same, equally often."""
    one, count = sample.values.get("element"), sample.values.get("count")
    if one is None or count is None or one.what == NOTHING:
        return False
    items = one.what.items if isinstance(one.what, Tuple) else (one,)
    return all(each.agree == SAME for each in (count, *items))


def _holds_own(run: Run, data: Value, depth: int = _DEPTH) -> bool:
    """Whether a data set is made of what the rank alone has read, or is told the rank.

    So is one that is made of several of which one is.
    """
    made = run.vm.object(data)
    held = run.vm.store.of(data.what) if made is not None else {"": data}
    inner = [Value(Ref(number)) for each in held.values() for number in _made_of(run, each)]
    if depth and any(_holds_own(run, each, depth - 1) for each in inner):
        return True
    if made is not None and made.cls >= 0:  # how it goes by that, is not always followed
        tensors = [each for each in held.values() if isinstance(each.what, Tensor)]
        if tensors and all(_is_drawn_for_it(run, each) for each in tensors):
            return True
        if any(_comes_of_a_part(run, each) for each in held.values()):
            return True
        own = {name for name, each in held.items() if each.agree.kind == "rank"}
        return any(
            isinstance(each, ast.Attribute) and each.attr in own and isinstance(each.ctx, ast.Load)
            for base in hierarchy.bases(run.vm, made.cls)
            for each in ast.walk(run.vm.classes[base].node)
        )
    return any(_is_own(each, ("shard",), _DEPTH) for each in held.values())


def _comes_of_a_part(run: Run, held: Value) -> bool:
    """Whether what is in a list was made of the part that each rank takes, as files are read."""
    content = containers.content(run.vm, held)
    one = content.what.element if content is not None and isinstance(content.what, Many) else None
    parts = one.what.items if one is not None and isinstance(one.what, Tuple) else (one,)
    return any(
        why.text == OWN_PART
        for each in parts
        if each is not None and each.why is not None
        for why in each.why.chain()
    )


def _is_made_of_a_part(run: Run, data: Value) -> bool:
    """Whether the function that makes a data set has gone through what is the rank's own part."""
    for made, way in events(run.root, "make"):
        maker = caller(way)
        if made.values["object"].what != data.what or maker is None:
            continue
        if any(True for _ in events(maker.body, "wrap", "forward")):
            continue
        overs = (each.values["over"] for each, _ in events(maker.body, "iterate"))
        if any(_is_own(over, ("shard",), 0) for over in overs):
            return True
    return False


def _is_drawn_for_it(run: Run, value: Value) -> bool:
    """Whether it was drawn by a seed that the rank decides: other numbers on each."""
    if value.agree.cause != "chance" or value.why is None:
        return False
    return value.why.root.node not in run.vm.draws


def _made_of(run: Run, value: Value) -> set[int]:
    """The objects of the user's that a value is, or that are in it."""
    content = containers.content(run.vm, value)
    found = {number for each in containers.held(content or value) for number in numbers(each)}
    return {each for each in found if run.vm.objects[each].cls >= 0}


def is_own_part(run: Run, value: Value) -> bool:
    """Whether the rank decides something that goes into a tensor, such as which part it is."""
    held = run.vm.store.of(value.what).values() if isinstance(value.what, Ref) else ()
    whole = [value, *held]
    parts = [*whole, *(one for each in whole for one in origins(run, each))]
    made = [how for each in whole for _, how in computed_from(run, each)]
    parts += [each for how in made for each in how.of]
    return any(_is_own(each, ("shard",), _DEPTH) for each in parts)


def _is_own(value: Value, causes: tuple[str, ...], depth: int) -> bool:
    """Whether the rank decides a value, or a part of it."""
    what, agree = value.what, value.agree
    if agree.kind == "rank" or agree.cause in causes:
        return True
    if any(isinstance(each, Table) for each in within(what)):
        return True
    items = what.items if isinstance(what, Tuple) else ()
    items = (what.element,) if isinstance(what, Many) else items
    return bool(depth) and any(_is_own(each, causes, depth - 1) for each in items)


def is_stream(run: Run, loader: Event) -> bool:
    """Whether a loader goes through its data from the beginning, and takes no indices."""
    data = loader.values.get("dataset")
    several = data.what.options if data is not None and isinstance(data.what, Either) else (data,)
    return all(each is not None and reading.is_stream(run.vm, each) for each in several)


def lone_readings(run: Run) -> list[Seq]:
    """How samples are read of a data set that nobody is seen to make."""
    return [run.vm.workers[event] for event, _ in events(run.root, "data_set")]


def of_many_ranks(run: Run) -> bool:
    """Whether the project has to do with several ranks, as far as its words tell."""
    if is_distributed(run):
        return True
    if _is_left_in_a_script_for_one(run):
        return False
    if run.vm.program.words:
        return True
    source = run.source(run.path)
    return source is not None and "torch.distributed" in source.source.text


def _is_left_in_a_script_for_one(run: Run) -> bool:
    """Whether it is a function that nobody calls, of a script of one process: none imports it."""
    imported, source = run.vm.program.imported_files, run.source(run.path)
    is_lone = not run.is_entry and imported is not None and run.path not in imported
    is_script = source is not None and source.is_script
    return is_lone and is_script and bool(run.earlier) and is_of_one_process(run.earlier[0])


# --- who deals out for itself


@dataclass(frozen=True, slots=True)
class Deal:
    """A part that each rank takes of what it has shuffled with its own random numbers."""

    event: Event
    order: Value
    seed: Event | None
    """The seed that the rank decides, None where nothing has seeded."""


_SEEDS = ("seed", "seed_python", "seed_numpy", "seed_generator", "seed_all", "new")


def deals(run: Run) -> Iterator[Deal]:
    """Parts of orders that are another on each rank."""
    seeds: dict[Place, Event] = {}
    for event, _ in events(run.root, *_SEEDS, "deal"):
        if event.kind != "deal":
            seed = event.values.get("seed")
            if seed is not None and seed.agree.kind == "rank" and seed.why is not None:
                seeds[seed.why.root.place] = event
            continue
        order = event.values["order"]
        if order.agree.cause != "chance" or order.why is None or _are_values(run, order):
            continue
        yield Deal(event, order, seeds.get(order.why.root.place))


_CONTINUOUS = frozenset(
    ("rand", "randn", "rand_like", "randn_like", "normal", "uniform", "standard_normal")
)
_ORDERS = ("argsort", "sort", "topk", "item", "index_select", "take", "gather", "multinomial")


def _are_values(run: Run, drawn: Value) -> bool:
    """Whether what is drawn are the numbers themselves, and no places of something by them."""
    by = {each.rpartition(".")[2] for each in _draws(run, drawn)}
    if not by or not by <= _CONTINUOUS:
        return False
    return not any(step.by.rpartition(".")[2] in _ORDERS for _, step in computed_from(run, drawn))


def _draws(run: Run, value: Value) -> Iterator[str]:
    """What the random numbers were drawn by that a value was computed from."""
    node = value.why.root.node if value.why is not None else None
    if node is not None and node in run.vm.draws:
        yield run.vm.draws[node]
    for each in origins(run, value):
        for part in within(each.what):
            if isinstance(part, Term | Tensor) and part in run.vm.drawn:
                yield run.vm.drawn[part]

"""Writes down samplers, loaders, and each pass over a loader.

A step costs two increments. What is written are passes: where they begin, how far the first batches
came, and their end.
"""

from __future__ import annotations

import dis
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterator
from types import CodeType
from typing import Any

from ddpdoctor.watch import datasets, numbered
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, is_users, outwards, users_frame
from ddpdoctor.watch.stale import Stale

_LOADERS = 64
_SAMPLERS = 256
_LINES = 6000
_EARLY_EPOCHS = 4
"""Of these the order of the indices is digested, and the first batches are written one by one."""
_FIRST_BATCHES = 16
_READ_BATCHES = 8
_FOLLOWED = 64
"""Indices of a dataset that are followed to their samples."""
_PREFIX = 64
"""Of a larger batch so many indices are digested: the cost of a step does not depend on it."""
_AGAIN, _NEVER = 2, 1 << 60
"""A pass that began anew so often, and never otherwise, goes through one order again and again."""
_SHORT = 0.1
"""After the first 64, passes that follow each other faster than this are not all written."""


class _Pass:
    """One pass over a loader, kept as an attribute of its iterator."""

    __slots__ = (
        *("batches", "content", "digesting", "early", "ended", "fed", "rows"),
        *("graded", "loader", "number", "order", "steps_before", "steps_noted", "written"),
        *("again", "chosen", "every", "first", "meant", "mixed", "noted", "samples"),
    )

    def __init__(self, steps: int) -> None:
        self.loader = self.number = -1  # not known yet: workers prefetch before the loader is told
        self.batches = 0
        self.order = 0
        self.digesting = self.early = True
        self.content: list[str] = []
        self.rows: int | None = None
        self.fed: int | None = None
        self.graded = self.ended = False
        self.written = False
        self.mixed: list[tuple[str, Frame | None]] | None = None
        """From which states of generators it was shuffled, and where."""
        self.again = 0
        """So often it was shuffled once more, from the first of these states, and began anew."""
        self.first: int | None = None
        """Digest of the indices of its first batch."""
        self.every = 0
        """Each index that this divides is followed to its sample; 0 is none."""
        self.chosen: deque[list[tuple[int, int]]] = deque()
        """Of the batches that are on their way: which place holds which index."""
        self.samples: deque[int] = deque()
        """Of the batches that are on their way: of how many samples they are."""
        self.meant: dict[int, list[str]] = {}
        self.steps_before = self.steps_noted = steps
        self.noted = -1
        """At so many batches another pass began, after `steps_noted` steps: later ones are its."""

    def leave(self, steps: int) -> None:
        """Another pass begins: if this one gives no more, what is stepped now is not for it."""
        if not self.ended and self.noted != self.batches:
            self.noted, self.steps_noted = self.batches, steps

    def steps(self, now: int) -> int:
        """Steps from its beginning to its last batch, and what was made of that."""
        return (self.steps_noted if self.noted == self.batches else now) - self.steps_before


class _Known:
    """A loader that was iterated."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.epochs = 0
        self.last: _Pass | None = None
        self.last_begun = 0.0


class Loading:
    """What is known of this rank's loaders."""

    def __init__(self, log: Log) -> None:
        self.unfed: _Pass | None = None
        """A pass that has just given one of its first batches, until the model has some of it."""
        self.log = log
        self._samplers = 0
        self._lines = 0
        self._places: weakref.WeakKeyDictionary[Any, Frame | None] = weakref.WeakKeyDictionary()
        self._loaders: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()
        self._numbered = 0
        self._stale = Stale(log)
        self._told: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        log.passes = self._under_way

    @harmless
    def sampler_built(self, sampler: Any) -> None:
        """Write down a DistributedSampler."""
        self._samplers += 1
        self._places[sampler] = users_frame()
        if self._samplers <= _SAMPLERS:
            self.log.write("sampler", **self._sampler(sampler))

    @harmless
    def epoch_told(self, sampler: Any) -> None:
        """Count it."""
        self._told[sampler] = self._told.get(sampler, 0) + 1

    @harmless
    def subset_built(self, subset: Any) -> None:
        """Remember where."""
        self._places[subset] = users_frame()

    @harmless
    def loader_built(self, loader: Any) -> None:
        """Remember where."""
        self._places[loader] = users_frame()

    @harmless
    def beginning(self, loader: Any) -> None:
        """Persistent workers keep their iterator: it prefetches for the pass that now begins."""
        self.log.mixed = []
        kept = getattr(loader, "_iterator", None)
        if kept is not None:
            kept._ddpdoctor = _Pass(self.log.steps)

    @harmless
    def begun(self, loader: Any, iterator: Any) -> None:
        """Write down that a pass has begun, and at first what it is over."""
        known = self._loaders.get(loader)
        if known is None:
            if self._numbered == _LOADERS:
                return
            known = self._loaders[loader] = _Known(self._numbered)
            if not self._write_loader(loader):
                known.number = -1
            self._numbered += known.number >= 0
        if known.number < 0:
            return
        for other in self._loaders.values():
            if other.last is not None:
                other.last.leave(self.log.steps)
        if known.last is not None and not known.last.ended:
            self._write(known.last)
        known.epochs += 1
        current = _pass_of(iterator, self.log.steps)
        current.loader, current.number = known.number, known.epochs
        current.mixed = self.log.mixed
        current.early = current.digesting = known.epochs <= _EARLY_EPOCHS
        now = time.monotonic()
        current.written = known.epochs <= 64 or now - known.last_begun > _SHORT
        known.last, known.last_begun = current, now
        self._stale.begins(loader, known.number, known.epochs)
        if current.written and self._lines < _LINES:
            self._lines += 1
            sampler = _distributed(loader)
            self.log.write(
                "epoch",
                loader=known.number,
                number=known.epochs,
                place=users_frame(),
                way=self.log.way(sys._getframe(1)),
                sampler_epoch=getattr(sampler, "epoch", None),
                told=self._told.get(sampler, 0) if sampler is not None else 0,
            )

    @harmless
    def chosen(self, iterator: Any, index: Any) -> None:
        """Digest the indices of a batch."""
        current = _pass_of(iterator, self.log.steps)
        several = isinstance(index, (list, tuple))
        if current.first is None:
            current.first = _digest(index)
        elif self.log.remixed is not None:
            self._begins_again(current, index)
        if current.mixed is self.log.mixed:
            self._mixed(current)
        current.samples.append(len(index) if several else 0)
        if current.digesting:
            current.order = hash((current.order, _digest(index)))
            if several and current.every >= 0:
                self._follow(iterator, current, index)

    def _mixed(self, current: _Pass) -> None:
        """What is shuffled from here on are samples, or their order once more."""
        self.log.mixed = None
        if current.mixed and (place := current.mixed[0][1]) is not None:
            self.log.dealing.add(place)

    def _begins_again(self, current: _Pass, index: Any) -> None:
        """A line that shuffles for passes has done so for this batch: note where it is the first.

        It never is where the sampler tells its passes apart.
        """
        remixed, self.log.remixed = self.log.remixed, None
        if remixed is None or not current.mixed or remixed[1] != current.mixed[0][1]:
            return
        state, place, way = remixed
        alike = state == current.mixed[0][0] and _digest(index) == current.first
        current.again = current.again + 1 if alike else -_NEVER
        if current.again == _AGAIN and current.written:
            self.log.write(
                "begun_again",
                loader=current.loader,
                number=current.number,
                batches=current.batches,
                place=place,
                way=way,
            )

    def _follow(self, iterator: Any, current: _Pass, index: Any) -> None:
        """Note where in the batch the indices come that are followed, the same on every rank."""
        if current.every == 0:
            dataset: Any = getattr(iterator, "_dataset", None)
            sampler = getattr(iterator, "_index_sampler", None)
            dealt = _distributed_below(sampler) is not None or bool(_sharer(sampler))
            dealt = dealt and hasattr(dataset, "__getitem__")
            current.every = max(1, len(dataset) // _FOLLOWED) if dealt else -1
        every = current.every
        if every > 0 and len(current.meant) < _FOLLOWED:
            places = [(n, i) for n, i in enumerate(index[:_PREFIX]) if i % every == 0]
            current.chosen.append(places)
        else:
            current.chosen.append([])

    @harmless
    def _note_meaning(self, current: _Pass, batch: Any) -> None:
        if places := current.chosen.popleft():
            wanted = [place for place, _ in places]
            found = datasets.samples(batch, wanted, self.log.samples)
            current.meant.update(
                (index, parts) for (_, index), parts in zip(places, found, strict=True) if parts
            )

    @harmless
    def drawn(self, iterator: Any, batch: Any) -> None:
        """Count a batch; some of the counts are written."""
        current = iterator._ddpdoctor
        current.batches += 1
        self.log.samples = current.samples.popleft() if current.samples else 0
        if current.mixed is self.log.mixed:
            self._mixed(current)  # a sampler that is a generator begins with the first batch
        if current.chosen:
            self._note_meaning(current, batch)
        number = current.batches
        if number & (number - 1) and not (current.early and number <= _FIRST_BATCHES):
            return
        current.graded |= _grad_enabled()
        if current.early and number <= _READ_BATCHES:
            current.content.append(datasets.content(batch))
            current.rows, self.unfed = datasets.rows(batch), current
        if current.early or number == 1:
            self._write(current)

    def fed(self, inputs: Any, kwargs: Any) -> None:
        """Note how much of the batch that was drawn before the model is given."""
        current, self.unfed = self.unfed, None
        if current is not None:
            current.fed = datasets.rows((inputs, kwargs))

    @harmless
    def ended(self, iterator: Any) -> None:
        """Write down that the loader was exhausted."""
        current = iterator._ddpdoctor
        if not current.ended:
            current.ended = True
            self._write(current)

    @harmless
    def flush(self) -> None:
        """Write the counts of the passes that were left before their end."""
        for known in self._loaders.values():
            if known.last is not None and not known.last.ended:
                self._write(known.last)

    def _under_way(self) -> list[tuple[int, int, int]]:
        last = (known.last for known in self._loaders.values())
        passes = (each for each in last if each is not None and each.written and not each.ended)
        return [(each.loader, each.number, each.batches) for each in passes]

    def _write(self, current: _Pass) -> None:
        if current.loader < 0 or not current.written or self._lines >= _LINES:
            return
        self._lines += 1
        content = {}
        if current.ended or not current.batches & (current.batches - 1):
            content = {"content": current.content}
        self.log.write(
            "drawn",
            loader=current.loader,
            number=current.number,
            batches=current.batches,
            steps=current.steps(self.log.steps),
            graded=current.graded,
            order=current.order if current.digesting else None,
            **content,
            rows=current.rows,
            fed=current.fed,
            ended=current.ended,
            mixed=[state for state, _ in current.mixed or ()],
            mixed_at=current.mixed[0][1] if current.mixed else None,
        )
        if current.meant:
            meant, current.meant = current.meant, {}
            samples = [[index, parts] for index, parts in meant.items()]
            self.log.write("meant", loader=current.loader, epoch=current.number, samples=samples)

    @harmless
    def _write_loader(self, loader: Any) -> bool:
        layers = harmless(datasets.layers)(loader.dataset) or [loader.dataset]
        dataset, members = layers[-1], harmless(datasets.members)(layers)
        fingerprint = datasets.Fingerprint(dataset)
        loop = next((f for f in outwards(sys._getframe(1)) if is_users(f.f_code)), None)
        sampler = _distributed(loader)
        self.log.write(
            "loader",
            number=self._numbered,
            place=self._places.get(loader),
            dataset=type(dataset).__qualname__,
            length=harmless(len)(loader.dataset),
            batches=harmless(_batches)(loader),
            batch_size=loader.batch_size,
            iterable=loader._dataset_kind == 1,
            workers=loader.num_workers,
            plain=_is_plain(loader),
            identity=fingerprint.identity,
            listings=fingerprint.listings,
            elements=fingerprint.elements,
            made_at=_maker(dataset),
            by_rank=datasets.deals_by_rank(layers, loader.collate_fn, loop),
            members=members,
            members_place=self._split(layers),
            sampler=harmless(self._sampler)(sampler) if sampler is not None else None,
            deals=harmless(_deals)(loader) or {},
            shared_by=harmless(_sharer)(loader.batch_sampler) or {},
        )
        rows = self.log.rows
        if rows and (found := numbered.in_dataset(rows, dataset)):
            self.log.write("numbered", place=_maker(dataset), found=found, dealt=True)
        return True

    def _split(self, layers: list[Any]) -> Frame | None:
        """Where the outermost Subset was made."""
        from torch.utils.data import Subset

        return next((self._places.get(each) for each in layers if isinstance(each, Subset)), None)

    def _sampler(self, sampler: Any) -> dict[str, Any]:
        return {
            "length": len(sampler.dataset),
            "num_replicas": sampler.num_replicas,
            "rank": sampler.rank,
            "seed": sampler.seed,
            "shuffle": sampler.shuffle,
            "drop_last": sampler.drop_last,
            "type": type(sampler).__qualname__,
            "place": self._places.get(sampler),
        }


def _pass_of(iterator: Any, steps: int) -> _Pass:
    try:
        found: _Pass = iterator._ddpdoctor
    except AttributeError:
        found = iterator._ddpdoctor = _Pass(steps)
    return found


def _digest(index: Any) -> int:
    """Of the indices of a batch, or of a single one."""
    return hash(tuple(index[:_PREFIX]) if isinstance(index, (list, tuple)) else index)


def _grad_enabled() -> bool:
    import torch

    return torch.is_grad_enabled()


def _distributed(loader: Any) -> Any:
    """The DistributedSampler that a loader draws from, directly or below batch samplers."""
    return _distributed_below(loader.batch_sampler) or _distributed_below(loader.sampler)


def _distributed_below(found: Any) -> Any:
    from torch.utils.data.distributed import DistributedSampler

    for _ in range(3):
        if isinstance(found, DistributedSampler):
            return found
        found = getattr(found, "sampler", None)
    return None


def _sharer(found: Any) -> dict[str, int]:
    """Whole numbers that a library's sampler, which is not torch's, holds; batch samplers first."""
    for _ in range(4):
        kind = type(found)
        code = getattr(getattr(kind, "__iter__", None), "__code__", None)
        if code is not None and not is_users(code) and not kind.__module__.startswith("torch."):
            return {k: v for k, v in getattr(found, "__dict__", {}).items() if type(v) is int}
        found = getattr(found, "batch_sampler", None) or getattr(found, "sampler", None)
    return {}


def _deals(loader: Any) -> dict[str, list[Any]]:
    """Numbers that the user's own sampler goes by: value, file, line and function of its reading.

    Those of its attributes that the methods of its class, and of none else, read.
    """
    for dealer in (loader.batch_sampler, getattr(loader.batch_sampler, "sampler", loader.sampler)):
        numbers = {k: v for k, v in getattr(dealer, "__dict__", {}).items() if type(v) is int}
        methods = [
            code
            for method in vars(type(dealer)).values()
            if (code := getattr(method, "__code__", None)) is not None and is_users(code)
        ]
        found = {
            each.argval: [numbers[each.argval], code.co_filename, line, code.co_qualname]
            for code in methods
            if code.co_name != "__init__"
            for line, each in _lines(code)
            if each.opname == "LOAD_ATTR" and each.argval in numbers
        }
        if found:
            return found
    return {}


def _lines(code: CodeType) -> Iterator[tuple[int, dis.Instruction]]:
    for each in dis.get_instructions(code):
        if each.positions is not None and each.positions.lineno is not None:
            yield each.positions.lineno, each


@harmless
def _maker(dataset: Any) -> Frame | None:
    """The user's code that has made this dataset; of a stream, what gives its samples."""
    from torch.utils.data import IterableDataset

    kind = type(dataset)
    maker = kind.__iter__ if isinstance(dataset, IterableDataset) else kind.__init__
    code = getattr(maker, "__code__", None)
    if code is None or not is_users(code):
        return None
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _batches(loader: Any) -> int | None:
    """How many batches there will be, where no code of the user's has a say in it."""
    from torch.utils.data import BatchSampler, sampler
    from torch.utils.data.distributed import DistributedSampler

    own = (
        *(sampler.SequentialSampler, sampler.RandomSampler, sampler.SubsetRandomSampler),
        *(sampler.WeightedRandomSampler, DistributedSampler),
    )
    # Of a batch sampler that was given, `loader.sampler` is one that nobody draws from.
    if type(batches := loader.batch_sampler) is BatchSampler and type(batches.sampler) in own:
        return len(batches)
    return None


def _is_plain(loader: Any) -> bool:
    from torch.utils.data import BatchSampler, sampler

    if type(loader.batch_sampler) is not BatchSampler:
        return False
    drawn = loader.batch_sampler.sampler
    if type(drawn) is sampler.RandomSampler:
        return not drawn.replacement and drawn._num_samples is None
    return type(drawn) is sampler.SequentialSampler

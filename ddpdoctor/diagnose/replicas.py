"""Which replicas of a model are no longer equal, since which step, and in which parameters.

Only what DDP promises is compared: gradients after their reduction, and parameters. Ranks that may
differ on purpose (a comm hook, Join, averaging by hand) are not compared, nor is a difference that
is gone again later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from ddpdoctor.catalog import RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.waiting import normal_op
from ddpdoctor.evidence import EXCHANGES, Place, RankEvidence, Sample, Training, Wrapper

_LATEST = 2000
_AVERAGING = ("all_reduce", "broadcast", "all_gather", "reduce_scatter")
_INTERVALS = 2
"""Between so many looks at a training it is seen whether something happens in each step."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One rank's part of a wrapped model, and its training by one optimizer."""

    rank: RankEvidence
    wrapper: Wrapper
    training: Training
    samples: Mapping[int, Sample]
    """By step."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Replicas that have parted."""

    replicas: tuple[Replica, ...]
    number: int
    """Which wrapper of its rank this is."""
    step: int
    """The first sampled step at which they differ."""
    equal_at: int
    """The sampled step before, at which they were equal; 0 if there is none."""
    what: str
    """gradients or parameters."""
    names: tuple[str, ...]
    """Those that differ."""

    @property
    def shares_wrapper(self) -> bool:
        """Whether several optimizers step on gradients of one backward pass."""
        mine = self.replicas[0]
        return any(
            window
            for (wrapper, _), training in mine.rank.training.items()
            if wrapper == self.number and training is not mine.training
            for window in training.windows
        )

    def here(self) -> list[tuple[Replica, Sample]]:
        """What each replica held at the first step at which they differ."""
        return [(replica, replica.samples[self.step]) for replica in self.replicas]

    @property
    def interval(self) -> str:
        """In words: since when."""
        if self.equal_at:
            return f"between steps {self.equal_at} and {self.step}"
        return "before the first step" if self.step == 1 else f"by step {self.step}"


def groups(case: Case) -> Iterator[tuple[int, tuple[Replica, ...]]]:
    """The replicas of each wrapped model as each of its optimizers trains it."""
    ranks = {rank.rank: rank for rank in case.evidence.ranks}
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for rank in case.evidence.ranks:
        for number in dict.fromkeys(number for number, _ in rank.training):
            if number >= len(rank.wrappers):
                continue
            members = rank.wrappers[number].ranks
            if (number, members) in seen:
                continue
            seen.add((number, members))
            of = [
                ranks[r]
                for r in members
                if r in ranks
                and any(wrapper == number for wrapper, _ in ranks[r].training)
                and ranks[r].wrappers[number].ranks == members
            ]
            for replicas in _by_optimizer(of, number):
                if len(replicas) > 1:
                    yield number, replicas


def _by_optimizer(of: list[RankEvidence], number: int) -> Iterator[tuple[Replica, ...]]:
    """The replicas of a model as one and the same optimizer trains it on each rank.

    That is the one made as the same of its rank. Where some ranks have made more of them, as for a
    trial of theirs, it is the one that steps at the same line.
    """
    own = [[optimizer for wrapper, optimizer in r.training if wrapper == number] for r in of]
    by_line = len(set(map(len, own))) > 1
    found: dict[object, list[Replica]] = {}
    for rank, optimizers in zip(of, own, strict=True):
        at: Counter[Place | None] = Counter()
        for optimizer in optimizers:
            place = rank.training[number, optimizer].places.get("step")
            at[place] += 1
            key = (place, at[place]) if by_line else optimizer
            found.setdefault(key, []).append(_replica(rank, number, optimizer))
    yield from map(tuple, found.values())


def is_a_replica(rank: RankEvidence) -> bool:
    """Whether all that it trains is trained by all ranks: those of a part may share samples."""
    known = [wrapper.ranks for wrapper in rank.wrappers if wrapper.ranks]
    return bool(rank.wrappers) and all(len(of) == rank.world_size for of in known)


def divergences(case: Case) -> list[Divergence]:
    """The models whose replicas have parted for good, each once, the earliest first."""
    first: dict[tuple[int, tuple[int, ...]], Divergence] = {}
    for number, replicas in groups(case):
        if any(r.training.kept_out or _averages_by_hand(r) for r in replicas):
            continue
        if (found := _first(number, replicas)) is not None:
            key = number, replicas[0].wrapper.ranks
            if key not in first or found.step < first[key].step:
                first[key] = found
    return sorted(first.values(), key=lambda found: (found.step, found.number))


def differing(samples: list[Mapping[str, str]]) -> tuple[str, ...]:
    """The names whose digests are not the same wherever the name occurs."""
    names = dict.fromkeys(name for sample in samples for name in sample)
    return tuple(
        name for name in names if len({sample[name] for sample in samples if name in sample}) > 1
    )


def outside(case: Case) -> tuple[list[RankEvidence], int, int, tuple[str, ...]] | None:
    """Parameters beside the wrapped models that have parted: ranks, optimizer, step, names.

    No rank may exchange tensors in a way that shards would need. They must have been equal at the
    first step, or be stepped together with what a wrapper holds: then they are of one model.
    """
    ranks = [rank for rank in case.evidence.ranks if rank.pid]
    if any(len(rank.groups) > 1 or exchanges(rank) for rank in ranks):
        return None
    by_key: dict[tuple[int, int], list[Sample]] = {}
    for rank in ranks:
        for sample in rank.samples:
            if sample.wrapper is None:
                by_key.setdefault((sample.optimizer, sample.step), []).append(sample)
    for optimizer in sorted({key[0] for key in by_key}):
        steps = sorted(step for o, step in by_key if o == optimizer)
        names = {s: differing([x.parameters for x in by_key[optimizer, s]]) for s in steps}
        whole = all(len(by_key[optimizer, step]) == len(ranks) for step in steps)
        beside = all(any(o == optimizer for _, o in rank.training) for rank in ranks)
        if whole and steps[0] == 1 and names[steps[-1]] and (beside or not names[1]):
            step = next(step for step in steps if names[step])
            return ranks, optimizer, step, names[step]
    return None


def given_to_one(ranks: Iterable[RankEvidence], step: Place) -> Iterator[RankPlace]:
    """The `reduce` whose sum one rank alone has, if it is the last that was called before a step.

    That the scheduler is given what came of it is concluded.
    """
    last: dict[Place, list[int]] = {}
    root: int | None = None
    for rank in ranks:
        times = [call.time for call in rank.plateaus if call.place == step]
        own = (c for c in rank.collectives if c.place is not None and times and c.begun < times[-1])
        call = max(own, key=lambda each: each.begun, default=None)
        if call is None or call.place is None or normal_op(call.op) != "reduce":
            return
        last.setdefault(call.place, []).append(rank.rank)
        root = call.root
    for place, numbers in last.items():
        to = f"rank {root}" if root is not None else "one rank"
        yield RankPlace(ranks=tuple(numbers), place=place, doing=f"gives the sum to {to} alone")


def _replica(rank: RankEvidence, number: int, optimizer: int) -> Replica:
    samples = {
        sample.step: sample
        for sample in rank.samples
        if (sample.wrapper, sample.optimizer) == (number, optimizer)
    }
    return Replica(rank, rank.wrappers[number], rank.training[number, optimizer], samples)


def _first(number: int, replicas: tuple[Replica, ...]) -> Divergence | None:
    steps = sorted(
        step
        for step in {step for replica in replicas for step in replica.samples}
        if all(step in replica.samples for replica in replicas)
    )
    if steps and any(_is_loaded_at_the_end(replica, steps[-1]) for replica in replicas):
        steps.pop()
    if not steps:
        return None
    last = [replica.samples[steps[-1]].parameters for replica in replicas]
    if not differing(last):  # or it was made up for: by averaging, by a step that reduces itself
        return None
    equal_at = 0
    for step in steps:
        here = [replica.samples[step] for replica in replicas]
        if names := differing([sample.gradients for sample in here]):
            return Divergence(replicas, number, step, equal_at, "gradients", names)
        if names := differing([sample.parameters for sample in here]):
            return Divergence(replicas, number, step, equal_at, "parameters", names)
        equal_at = step
    return None


def _is_loaded_at_the_end(replica: Replica, step: int) -> bool:
    """Whether a rank has loaded what it held there after its last step: nothing is learnt of it."""
    mine = replica.training
    steps = {each.optimizer: each.steps for each in replica.rank.training.values()}
    steps[mine.optimizer] = step - 1
    return not replica.samples[step].gradients and any(
        load.wrapper == mine.wrapper and load.changed and load.step >= sum(steps.values())
        for load in replica.rank.state_loads
    )


def _averages_by_hand(replica: Replica) -> bool:
    """Whether the job itself sends tensors about that are as large as the largest parameter.

    It does so again and again, from one line, while it trains: what is sent once makes the ranks
    alike to begin with, or tells at the end whether they still are.
    """
    sizes = replica.wrapper.sizes
    telling = {max(sizes, default=0), sum(sizes)} - {0, 1}
    calls: dict[Place, list[float]] = {}
    for each in replica.rank.collectives[-_LATEST:]:
        if each.place is None or normal_op(each.op) not in _AVERAGING:
            continue
        if sum(prod(shape) for shape in each.shapes) in telling:
            calls.setdefault(each.place, []).append(each.begun)
    looks = [each.time for each in replica.samples.values() if each.gradients and each.time]
    if not looks:
        return bool(calls)
    return any(min(of) < look < max(of) for of in calls.values() for look in looks)


def exchanges(rank: RankEvidence) -> bool:
    """Whether its latest collectives give the ranks each other's tensors as a step is made.

    Parts of a model need that at every step; predictions that are gathered now and then are none.
    """
    latest = rank.collectives[-_LATEST:]
    calls = [each.begun for each in latest if normal_op(each.op) in EXCHANGES]
    known = latest[0].begun if len(latest) == _LATEST else 0.0
    looks = {
        each.step: each.time
        for each in rank.samples
        if each.time >= known and (each.gradients or each.wrapper is None)  # no step ends the last
    }
    between = [*pairwise(sorted({*looks.values()}))]
    if not calls or len(between) < _INTERVALS:
        return bool(calls)
    return all(any(since < call < until for call in calls) for since, until in between)

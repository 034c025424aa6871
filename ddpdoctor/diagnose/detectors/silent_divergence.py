"""DDP300 and its named forms: the replicas of a model are no longer equal, and nobody said so."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ddpdoctor.catalog import Certainty, Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.checkpoint_race import stale_reads
from ddpdoctor.diagnose.replicas import (
    Divergence,
    divergences,
    given_to_one,
)
from ddpdoctor.evidence import FileEvent, Place, RankEvidence, Sample, StateLoad, named
from ddpdoctor.evidence.events.altered import Altered
from ddpdoctor.evidence.events.planned import Schedule, ScheduleStep

_SHOWN = 3
_ROUNDING = 2e-6
"""So small a share of their size is what additions in another order make of 32-bit numbers."""
_OF_ROUNDING = (
    " By no more than rounding: the ranks do the same sums in another order, and none trains alone."
)


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why replicas have parted."""

    code: str
    title: str
    cause: str
    cure: str
    lines: tuple[str, ...]
    """Which of the lines that the training knows are to blame, and what they did there."""
    ranks: tuple[int, ...] = ()
    """The culprits, where not all ranks are."""
    places: tuple[RankPlace, ...] = ()
    """More lines, before those."""
    certainty: Certainty = "proven"


@detector(precedence=400)
def detect(case: Case) -> Iterator[Finding]:
    """The first model that parted; what follows from it in other models is not told.

    Nor is a model that parted by a file that some ranks have read before it was written, or that
    lies in memory that all share: each is looked at while others change it.
    """
    if any(each.code == "DDP320" for each in case.found):
        return
    well = case.ended_well
    for found in [each for each in divergences(case) if well or _is_older(each)][:1]:
        if _loaded_differently(found):
            yield from () if _read_too_early(case, found) else _loaded(case, found)
            return
        why = _reason(found)
        if not (why.code == "DDP513" and _read_too_early(case, found)):
            yield _finding(found, why)


def _read_too_early(case: Case, found: Divergence) -> bool:
    """Whether DDP501 tells of a read between when they were equal and when they were not."""
    early = [bad.load for bad in stale_reads(case)]
    for replica, sample in found.here():
        before = replica.samples.get(found.equal_at)
        since = before.time if before is not None else 0.0
        if any(since < each.begun < sample.time and each in early for each in replica.rank.files):
            return True
    return False


def _is_older(found: Divergence) -> bool:
    """Whether it was there long before what ended the job, and is not the first sign of that."""
    steps = min(replica.rank.steps for replica in found.replicas)
    return 2 * found.step <= steps and _skip(found) is None


def _finding(found: Divergence, why: _Reason) -> Finding:
    ranks = tuple(replica.rank.rank for replica in found.replicas)
    wrapped = found.replicas[0].wrapper.place
    apart = _apart(found)
    rounding = why.title == "silent-divergence" and 0.0 < apart < _ROUNDING
    size = (f"apart by {apart:.1g} of their size at the end",) if apart else ()
    return Finding(
        code=why.code,
        title=why.title,
        severity="warning" if rounding else "error",
        certainty=why.certainty,
        ranks=why.ranks or ranks,
        places=(
            *why.places,
            *_places(found, why),
            RankPlace(ranks=ranks, place=wrapped, doing="wrapped the model"),
        ),
        cause=why.cause + _OF_ROUNDING if rounding else why.cause,
        cure=Cure(text=why.cure),
        evidence=(
            *size,
            f"{found.what} became different {found.interval}: {listed(found.names)}",
            *_sides(found),
        ),
    )


def _reason(found: Divergence) -> _Reason:
    """The first that fits; what is known for certain comes before what is concluded."""
    ways = (
        _skip,
        _left_out,
        _passed_over,
        _rates,
        _restored,
        _converted,
        _before_the_first_step,
        _late,
        _past_the_wrapper,
        _held,
        _loaded_by_some,
    )
    return next((why for way in ways if (why := way(found)) is not None), None) or _unknown(found)


def _restored(found: Divergence) -> _Reason | None:
    """What one line has loaded since they were equal was not the same: an average of rank 0's."""
    loads: dict[tuple[Place, int], list[StateLoad]] = {}
    for replica, sample in found.here():
        before = replica.samples.get(found.equal_at)
        numbers: Counter[Place] = Counter()
        for load in replica.rank.state_loads:
            if load.place is None or not load.content:
                continue
            numbers[load.place] += 1
            if before is not None and before.time < load.time < sample.time:
                loads.setdefault((load.place, numbers[load.place]), []).append(load)
    for (place, _), of in loads.items():
        if len(of) < len(found.replicas) or len({load.content for load in of}) == 1:
            continue
        ranks = tuple(replica.rank.rank for replica in found.replicas)
        return _Reason(
            "DDP513",
            "resume-on-one-rank",
            f"what {named(ranks)} loaded at {place} was not the same: since then "
            f"{listed(found.names)} differ ({found.interval}).",
            "Load what all ranks have alike: broadcast it from the rank that keeps it, or let "
            "every rank keep it in the same way.",
            (),
            places=(
                RankPlace(ranks=ranks, place=place, doing="load_state_dict"),
                *callers(ranks, of[0].way, place),
            ),
            certainty="proven" if of[0].of == "wrapper" else "evidence",
        )
    return None


def _loaded_by_some(found: Divergence) -> _Reason | None:
    """Some ranks have loaded something else into the model since it was equal, and others not.

    Who has loaded twice may have put back what he had: nothing is said of him.
    """
    loads: dict[int, StateLoad] = {}
    for replica, sample in found.here():
        before = replica.samples.get(found.equal_at)
        since = before.time if before is not None else math.inf
        own = [
            each
            for each in replica.rank.state_loads
            if each.wrapper == replica.training.wrapper and since < each.time < sample.time
        ]
        if len(own) > 1 or any(not each.changed for each in own):
            return None
        if own:
            loads[replica.rank.rank] = own[0]
    others = [r.rank.rank for r in found.replicas if r.rank.rank not in loads]
    if not loads or not others:
        return None
    ranks, load = tuple(sorted(loads)), loads[min(loads)]
    return _Reason(
        "DDP513",
        "resume-on-one-rank",
        f"{named(ranks)} alone loaded other weights into the model, and {named(others)} did not: "
        f"since then {listed(found.names)} differ ({found.interval}).",
        "Load on every rank, or broadcast what was loaded from the rank that loads.",
        (),
        ranks,
        places=(
            RankPlace(ranks=ranks, place=load.place, doing="load_state_dict"),
            *callers(ranks, load.way, load.place),
        ),
        certainty="evidence",
    )


def _late(found: Divergence) -> _Reason | None:
    late = {name for _, sample in found.here() for name in sample.late}
    if not late or found.what != "gradients" or not set(found.names) <= late:
        return None
    return _Reason(
        "DDP305",
        "late-parameter",
        f"{listed(found.names)} came or was unfrozen after the wrap, so DDP does not know of it: "
        "each rank trains its own.",
        "Change the model first, then wrap it.",
        ("added", "unfrozen", "step"),
    )


def _converted(found: Divergence) -> _Reason | None:
    """DDP's hooks sit on what a change of type has thrown away."""
    if not any("converted" in replica.training.places for replica in found.replicas):
        return None
    return _Reason(
        "DDP305",
        "late-parameter",
        f"the model was converted to another type or device after the wrap: DDP's hooks were on "
        f"what it was before, so gradients are not reduced any more ({listed(found.names)} "
        "differ).",
        "Convert the model first, then wrap it; export from a copy (copy.deepcopy) or from the "
        "state_dict.",
        ("converted", "step"),
    )


def _past_the_wrapper(found: Divergence) -> _Reason | None:
    """Steps without a pass of the wrapper, or without a reduction after it."""
    windows = _windows(found)
    mine = found.replicas[0].training
    beside = found.what == "gradients" and mine.overtaken and "bypass" in mine.places
    if beside if found.shares_wrapper else "" in windows:
        return _Reason(
            "DDP303",
            "bypassed-wrapper",
            "the forward pass goes past the wrapper, so backward reduces nothing: each rank trains "
            f"alone ({listed(found.names)} differ).",
            "Call the wrapper itself in training: model(x), not model.module(x).",
            ("bypass", "bypass from", "step"),
            certainty="evidence" if found.shares_wrapper else "proven",
        )
    if any(w.endswith("a") for w in windows) and not any(w.endswith("s") for w in windows):
        return _Reason(
            "DDP313",
            "autograd-grad-bypass",
            "the gradients come from torch.autograd.grad, which DDP cannot see: no rank shares its "
            "own.",
            "Use loss.backward(), or average the gradients over the ranks yourself.",
            ("grad", "step"),
        )
    return None


def _windows(found: Divergence) -> dict[str, int]:
    """All ranks do alike: the windows of the first tell it."""
    return dict(found.replicas[0].training.windows)


def _held(found: Divergence) -> _Reason | None:
    """Steps on gradients that no_sync has kept local."""
    windows = _windows(found)
    held = sum(count for window, count in windows.items() if window.endswith("n"))
    if not held:
        return None
    if any(replica.training.late_backward for replica in found.replicas):
        return _Reason(
            "DDP314",
            "no-sync-wrong-scope",
            "the forward pass runs under no_sync() and its backward outside of it: the gradients "
            "are never reduced.",
            "Put forward and backward under no_sync() together, or neither of them.",
            ("late backward", "held forward"),
        )
    return _Reason(
        "DDP315",
        "accumulation-off-by-one",
        f"the optimizer steps on gradients that no_sync() has kept local: {held} of the "
        f"{sum(windows.values())} steps looked at came after a micro-batch that does not "
        "synchronise.",
        "Let one condition decide both: synchronise in the micro-batch after which you step, the "
        "last of the epoch included.",
        ("step", "held forward"),
    )


def _skip(found: Divergence) -> _Reason | None:
    """A rank has made more backward passes for its steps than the others."""
    passes = {replica.rank.rank: sample.reductions for replica, sample in found.here()}
    if len(set(passes.values())) < 2 or not min(passes.values()):
        return None
    fewest = min(passes.values())
    skipped = tuple(rank for rank, count in passes.items() if count > fewest)
    told = ", ".join(f"rank {rank} {count}" for rank, count in sorted(passes.items()))
    return _Reason(
        "DDP307",
        "rank-local-skip",
        f"some ranks skip an optimizer step that the others take: backward passes until step "
        f"{found.step}: {told}.",
        "Decide with an all_reduce whether to skip, so that all ranks skip together.",
        ("step",),
        skipped,
    )


def _left_out(found: Divergence) -> _Reason | None:
    """Ranks that have made as many backward passes as the others, and fewer steps of them."""
    steps = {replica.rank.rank: replica.training.steps for replica in found.replicas}
    passes = {replica.training.reductions for replica in found.replicas}
    if found.what != "parameters" or len(passes) > 1 or len(set(steps.values())) < 2:
        return None
    skipped = tuple(rank for rank, count in steps.items() if count < max(steps.values()))
    told = ", ".join(f"rank {rank} {count}" for rank, count in sorted(steps.items()))
    return _Reason(
        "DDP307",
        "rank-local-skip",
        "some ranks leave out an optimizer step that the others take: of "
        f"{passes.pop()} backward passes each, steps: {told}.",
        "Decide with an all_reduce whether to skip, so that all ranks skip together.",
        ("step",),
        skipped,
    )


def _passed_over(found: Divergence) -> _Reason | None:
    """Some ranks left passes without a backward pass, and have made fewer steps in the end."""
    steps = {replica.rank.rank: replica.training.steps for replica in found.replicas}
    lone = {
        replica.rank.rank: sum(of.count("a") * n for of, n in replica.training.windows.items())
        for replica in found.replicas
    }
    skipped = tuple(rank for rank, count in lone.items() if count > min(lone.values()))
    if found.what != "gradients" or not skipped:
        return None
    if max(steps[rank] for rank in skipped) >= min(steps[r] for r in steps if r not in skipped):
        return None
    told = "; ".join(f"rank {rank} {lone[rank]} and {steps[rank]}" for rank in sorted(steps))
    return _Reason(
        "DDP307",
        "rank-local-skip",
        "some ranks make forward passes and leave out the backward pass and the step that others "
        f"make of theirs (passes left so, and steps: {told}).",
        "Decide with an all_reduce whether to skip, so that all ranks skip together.",
        ("step", "forward"),
        skipped,
        certainty="evidence",
    )


def _before_the_first_step(found: Divergence) -> _Reason | None:
    if found.what != "parameters" or found.step != 1:
        return None
    lines = tuple(_altered(found))
    who = "something has changed them on some ranks"
    if len(lines) == 1:  # on which ranks, the place says: it may be all, each in its own way
        who = f"{lines[0].place} has changed them"
    return _Reason(
        "DDP300",
        "silent-divergence",
        f"{listed(found.names)} differed before the first step: {who} after DDP had made them "
        "equal.",
        "Initialise and load before the wrap, or in the same way on every rank.",
        ("step",),
        places=lines,
    )


def _altered(found: Divergence, *, later: bool = False) -> Iterator[RankPlace]:
    """The lines that changed what differs in place, once DDP had made it equal.

    `later`: in between steps, and not before the first.
    """
    lines: dict[Place, list[int]] = {}
    for replica in found.replicas:
        for each in replica.rank.of(Altered):
            is_it = each.wrapper == replica.training.wrapper and bool(each.step) == later
            if is_it and not {*found.names}.isdisjoint(each.names):
                lines.setdefault(each.place, []).append(replica.rank.rank)
    for place, ranks in lines.items():
        doing = "changes it between steps" if later else "changes it after the wrap"
        yield RankPlace(ranks=tuple(sorted({*ranks})), place=place, doing=doing)


def _rates(found: Divergence) -> _Reason | None:
    told = _told_rates(found)
    if not told:
        return _rates_before(found)
    if _plateau_lines(found):
        return _Reason(
            "DDP216",
            "scheduler-on-local-metric",
            f"ReduceLROnPlateau was stepped with each rank's own metric: the learning rates have "
            f"parted ({told}).",
            "Reduce the metric over the ranks before you step the scheduler.",
            ("plateau",),
        )
    some, places = _stepped_by_some(found)
    alone = f", as only {named(some)} stepped the schedule" if some else ""
    return _Reason(
        "DDP300",
        "silent-divergence" if some else "rates-apart",
        f"the learning rates differ between ranks ({told}){alone}, and so the parameters.",
        "Step the schedule on every rank."
        if some
        else "Compute the learning rate from what is the same on every rank.",
        ("step",),
        places=places,
    )


def _stepped_by_some(found: Divergence) -> tuple[tuple[int, ...], tuple[RankPlace, ...]]:
    """The ranks that have stepped a schedule, where all have made it and others have not."""
    ranks = [replica.rank for replica in found.replicas]
    steps = {rank.rank: each for rank in ranks for each in rank.of(ScheduleStep)[:1]}
    made = {len(rank.of(Schedule)) for rank in ranks}
    if not steps or len(steps) == len(ranks) or len(made) > 1 or made == {0}:
        return (), ()
    some, step = tuple(sorted(steps)), steps[min(steps)]
    at = RankPlace(ranks=some, place=step.place, doing="scheduler.step()")
    return some, (at, *callers(some, step.way, step.place))


def _rates_before(found: Divergence) -> _Reason | None:
    """They differed at a step that was not looked at closely, and are alike again."""
    so_far = {sample.rates_so_far for _, sample in found.here()}
    if len(so_far) < 2 or found.what != "parameters":
        return None
    return _Reason(
        "DDP300",
        "rates-apart",
        f"the learning rates differed between ranks at some step {found.interval}, and so the "
        "parameters.",
        "Compute the learning rate from what is the same on every rank.",
        ("step",),
    )


def _apart(found: Divergence) -> float:
    """How far the parameters are apart at the end, as a share of their size; 0 if not known."""
    last = [max(replica.samples.items())[1].few for replica in found.replicas]
    furthest = 0.0
    for name in found.names:
        rows = [few[name] for few in last if name in few]
        size = max((abs(value) for row in rows for value in row), default=0.0)
        for values in zip(*rows, strict=False) if size else ():
            furthest = max(furthest, (max(values) - min(values)) / size)
    return furthest


def _unknown(found: Divergence) -> _Reason:
    lines = tuple(_altered(found, later=True)) if found.what == "parameters" else ()
    by = f" {lines[0].place} changes them outside of the optimizer's step." if lines else ""
    return _Reason(
        "DDP300",
        "silent-divergence",
        f"the replicas are no longer equal: {found.what} of {listed(found.names)} differ "
        f"{found.interval}.{by}",
        "Change weights by what is the same on every rank, or on rank 0, and broadcast them."
        if lines
        else "Look for what ranks do differently between these steps; DDPDOCTOR_DIGEST_EVERY=1 "
        "narrows it down.",
        ("step", "backward", "forward"),
        places=lines,
    )


def _places(found: Divergence, why: _Reason) -> Iterator[RankPlace]:
    if "plateau" in why.lines:
        for place in _plateau_lines(found):
            yield RankPlace(ranks=why.ranks, place=place, doing="scheduler.step(metric)")
            yield from given_to_one((replica.rank for replica in found.replicas), place)
    for line in why.lines:
        by_place: dict[Place, list[int]] = {}
        for replica in found.replicas:
            known = replica.training.places.get(line)
            if known is not None and replica.rank.rank in (why.ranks or (replica.rank.rank,)):
                by_place.setdefault(known, []).append(replica.rank.rank)
        for where, ranks in by_place.items():
            yield RankPlace(ranks=tuple(ranks), place=where, doing=_DOING[line])


_DOING = {
    "converted": "converts the wrapped model",
    "step": "optimizer.step()",
    "added": "added to the wrapped model",
    "unfrozen": "unfreezes parameters",
    "bypass": "called the module inside the wrapper",
    "bypass from": "calls it",
    "grad": "torch.autograd.grad()",
    "late backward": "backward() outside of no_sync()",
    "held forward": "forward under no_sync()",
    "backward": "backward()",
    "forward": "forward",
}


def _plateau_lines(found: Divergence) -> list[Place]:
    """Where a plateau scheduler was given different metrics on different ranks."""
    metrics: dict[int, set[float]] = {}
    lines: dict[int, Place] = {}
    for replica in found.replicas:
        for call in replica.rank.plateaus:
            metrics.setdefault(call.number, set()).add(call.metric)
            if call.place is not None:
                lines.setdefault(call.number, call.place)
    return list(
        dict.fromkeys(lines[n] for n, told in metrics.items() if len(told) > 1 and n in lines)
    )


def _sides(found: Divergence) -> Iterator[str]:
    """Which ranks are equal to each other, where there are more than two."""
    if len(found.replicas) < 3:
        return
    sides: dict[tuple[str | None, ...], list[int]] = {}
    for replica, sample in found.here():
        held = sample.gradients if found.what == "gradients" else sample.parameters
        sides.setdefault(tuple(held.get(name) for name in found.names), []).append(
            replica.rank.rank
        )
    if len(sides) < len(found.replicas):
        yield "equal among themselves: " + "; ".join(map(named, sides.values()))


def _loaded_differently(found: Divergence) -> bool:
    """Some ranks loaded a checkpoint and others did not: that is the cause, not a reason here."""
    return len(set(_loads(found).values())) > 1


def _loaded(case: Case, found: Divergence) -> Iterator[Finding]:
    """DDP513: it was not told yet, as what followed the load looked as if it had been shared."""
    if "DDP513" in case.told:
        return
    loads = _loads(found)
    ranks = tuple(sorted(rank for rank, of in loads.items() if of == max(loads.values())))
    rank, sample = next((r.rank, s) for r, s in found.here() if r.rank.rank == ranks[0])
    others = named(rank for rank in loads if rank not in ranks)
    is_seen = len({each.state for each in loads.values()}) > 1
    read = len({each.alone for each in loads.values()}) > 1
    did = "restored the state of the training" if is_seen else "read a checkpoint"
    with_rates = f" Their learning rates differ: {told}." if (told := _told_rates(found)) else ""
    elsewhere = {
        f.place for r, s in found.here() if r.rank.rank not in ranks for f in _files_read(r.rank, s)
    }
    yield Finding(
        code="DDP513",
        title="resume-on-one-rank",
        severity="error",
        certainty="proven" if is_seen else "evidence",
        ranks=ranks,
        places=tuple(_restores(rank, sample, ranks, elsewhere if read else None)),
        cause=f"only {named(ranks)} {did}; {others} did not, and since then "
        f"{listed(found.names)} differ ({found.interval}).{with_rates}",
        cure=Cure(text="Load on every rank, or load before the wrap: DDP then sends it to all."),
    )


def _told_rates(found: Divergence) -> str:
    """The learning rates, where they differ."""
    rates = {replica.rank.rank: sample.rates for replica, sample in found.here()}
    if len(set(rates.values())) < 2:
        return ""
    return ", ".join(f"rank {rank} {rate[0]:g}" for rank, rate in sorted(rates.items()) if rate)


def _restores(
    rank: RankEvidence,
    sample: Sample,
    ranks: tuple[int, ...],
    elsewhere: Collection[Place | None] | None,
) -> Iterator[RankPlace]:
    """The lines that load, of the file where not all have read it, else of the state alone.

    What others read too, as the samples of a dataset, is read at a line of `elsewhere`.
    """
    files = [] if elsewhere is None else _files_read(rank, sample)
    files = [each for each in files if each.place not in (elsewhere or ())] or files
    if not files:
        states = _states_loaded(rank, sample)
        for load in ([each for each in states if each.of == "optimizer"] or states)[-1:]:
            yield RankPlace(ranks=ranks, place=load.place, doing="load_state_dict")
        return
    last = files[-1]
    yield RankPlace(ranks=ranks, place=last.place, doing="loads a checkpoint")
    for load in [each for each in rank.state_loads if each.time > last.begun][:2]:
        yield RankPlace(ranks=ranks, place=load.place, doing="load_state_dict")
    yield from callers(ranks, last.way, last.place)


@dataclass(frozen=True, slots=True, order=True)
class _Loads:
    """What a rank had loaded as the replicas were seen to differ: nothing later is a cause."""

    states: int
    """Into a model or an optimizer."""
    optimizers: int
    alone: int
    """Lines at which this rank has read a checkpoint, and others none: their use is unseen."""

    @property
    def state(self) -> tuple[int, int]:
        """What was seen to become the state of the training."""
        return self.states, self.optimizers


def _loads(found: Divergence) -> dict[int, _Loads]:
    """By rank. Where all have restored as much, one may have read it for all of them."""
    here = [(replica.rank, sample) for replica, sample in found.here()]
    ranks = [rank for rank, _ in here]
    read = {
        rank.rank: {e.place for e in _files_read(rank, sample) if not _is_told(e, rank, ranks)}
        for rank, sample in here
    }
    common = set.intersection(*read.values())
    lines = {place for rank, sample in here for place in _lines_that_restore(rank, sample)}
    restored = {
        rank.rank: [
            each
            for each in _states_loaded(rank, sample)
            if each.of == "optimizer" or each.place in lines
        ]
        for rank, sample in here
    }
    shared = len({len(states) for states in restored.values()}) == 1 and all(restored.values())
    return {
        rank: _Loads(
            len(states),
            sum(each.of == "optimizer" for each in states),
            0 if shared else len(read[rank] - common),
        )
        for rank, states in restored.items()
    }


def _lines_that_restore(rank: RankEvidence, sample: Sample) -> Iterator[Place | None]:
    """Where what was read since the load before is loaded: the rest are copies, as of an average.

    All ranks' lines count for each: one may read the file, and broadcast it to the others.
    """
    begun = [each.begun for each in _files_read(rank, sample)]
    before = 0.0
    for state in _states_loaded(rank, sample):
        if any(before <= each < state.time for each in begun):
            yield state.place
        before = state.time


def _files_read(rank: RankEvidence, sample: Sample) -> list[FileEvent]:
    """The checkpoints that were read until then: what is no file of torch's is data."""
    files = (each for each in rank.files if each.action == "load" and not each.error)
    return [each for each in files if each.by == "torch" and each.begun < _seen(sample)]


def _is_told(load: FileEvent, rank: RankEvidence, ranks: list[RankEvidence]) -> bool:
    """Whether another rank has written what is read: it holds the same, as it has made it."""
    return any(
        file.path == load.path and file.action in ("save", "replace") and file.begun < load.begun
        for other in ranks
        if other is not rank
        for file in other.files
    )


def _states_loaded(rank: RankEvidence, sample: Sample) -> list[StateLoad]:
    return [each for each in rank.state_loads if each.time < _seen(sample)]


def _seen(sample: Sample) -> float:
    """When this was seen; some evidence does not say."""
    return sample.time or math.inf


def listed(names: tuple[str, ...]) -> str:
    """The first few names."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more

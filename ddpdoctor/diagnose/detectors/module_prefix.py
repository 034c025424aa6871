"""DDP508: the keys of a checkpoint begin with "module.", and those of the model do not.

Or what was to take that away has taken more: each key that was left over is the end of another key
that was missing, and strict=False says nothing of it. Or a parameter is looked up by the wrapper's
name for it among things that have none such: names that were taken before the wrap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, RankEvidence, StateLoad

_MISSING = re.compile(r"Missing key\(s\) in state_dict: (.*)")
_UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: (.*)")
_PREFIX = "module."
_KEY = re.compile(r'"([^"]+)"')


@detector(precedence=260)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that failed so, or that loaded nothing without a word."""
    hit = [each for each in case.raised if _by_prefix(each.exception.message)]
    if hit:
        case.explain(*hit)
        ranks = tuple(each.rank.rank for each in hit)
        yield _finding(
            ranks,
            hit[0].exception.place,
            _by_prefix(hit[0].exception.message),
            case.consequences(),
            (*_saved(case, hit[0].rank, hit[0].exception.time),),
        )
        return
    silent = [(rank, load) for rank in case.evidence.ranks for load in _nothing_loaded(rank)]
    for place in dict.fromkeys(load.place for _, load in silent):
        here = [(rank.rank, load) for rank, load in silent if load.place == place]
        load = here[0][1]
        cause = (
            f"strict=False hides that the keys differ by a leading module.: {load.missing} "
            f"of the model's keys were not in the file, and {load.unexpected} of the file's were "
            "left over, so these weights were not loaded."
        )
        ranks = tuple(dict.fromkeys(rank for rank, _ in here))
        saved = (*_saved(case, case.evidence.ranks[ranks[0]], load.time),)
        yield _finding(ranks, place, cause, (), saved)


@detector(precedence=259)
def looked_up(case: Case) -> Iterator[Finding]:
    """Name the ranks that a name of the wrapper's own ended."""
    hit = [each for each in case.raised if _is_a_wrappers_name(each)]
    if not hit:
        return
    case.explain(*hit)
    ranks, raised = tuple(each.rank.rank for each in hit), hit[0].exception
    name = raised.message.strip("'\"")
    yield Finding(
        code="DDP508",
        title="module-prefix",
        severity="error",
        certainty="evidence",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=raised.place, doing=f"looks up {name}"),
            *callers(ranks, raised.user, raised.place),
        ),
        cause=f"{name} is what the DDP wrapper calls the parameter {name.removeprefix(_PREFIX)}: "
        "it was looked up among names that do not have it, as those taken from the bare model, "
        "before it was wrapped.",
        cure=Cure(text="Take the names from one of them at both ends: from ddp.module."),
        consequences=case.consequences(),
    )


def _is_a_wrappers_name(raised: Raised) -> bool:
    name = raised.exception.message.strip("'\"")
    if raised.exception.type != "KeyError" or not name.startswith(_PREFIX):
        return False
    bare = name.removeprefix(_PREFIX)
    return any(bare in wrapper.parameters for wrapper in raised.rank.wrappers)


@detector(precedence=261)
def cut(case: Case) -> Iterator[Finding]:
    """One finding for each line that loads so."""
    loads = [(rank, load) for rank in case.evidence.ranks for load in _cut_short(rank)]
    for place in dict.fromkeys(load.place for _, load in loads):
        here = [(rank, load) for rank, load in loads if load.place == place]
        load = here[0][1]
        ranks = tuple(dict.fromkeys(rank.rank for rank, _ in here))
        yield Finding(
            code="DDP508",
            title="module-prefix",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=place, doing="load_state_dict"),
                *callers(ranks, load.way, place),
            ),
            cause=f"strict=False hides that keys have lost their beginnings: {load.unexpected} of "
            f"them were left over, each the end of one that was missing ({load.cut[0]} of "
            f"{load.cut[1]}), so these weights were not loaded.",
            cure=Cure(
                text="Take the prefix away as a whole, as str.removeprefix does (lstrip takes away "
                "any of its letters), and look at what load_state_dict returns."
            ),
        )


def _cut_short(rank: RankEvidence) -> Iterator[StateLoad]:
    for number, load in enumerate(rank.state_loads):
        later = rank.state_loads[number + 1 :]
        if load.cut and not any(each.name == load.name and not each.missing for each in later):
            yield load


def _by_prefix(message: str) -> str:
    """The cause, if a prefix is all that keeps the keys apart; else ""."""
    missing, unexpected = _MISSING.search(message), _UNEXPECTED.search(message)
    if "loading state_dict" not in message or missing is None or unexpected is None:
        return ""
    wanted, given = set(_KEY.findall(missing[1])), set(_KEY.findall(unexpected[1]))
    if any(f"module.{key}" in given for key in wanted):
        return "the file was saved from the DDP wrapper: its keys begin with module., " + (
            f"and the bare model has none such ({min(given)} for {min(wanted)})."
        )
    if any(f"module.{key}" in wanted for key in given):
        return (
            "the file was saved from the bare model, and is loaded into the DDP wrapper, whose "
            f"keys begin with module. ({min(given)} for {min(wanted)})."
        )
    return ""


def _nothing_loaded(rank: RankEvidence) -> Iterator[StateLoad]:
    """Loads that passed over keys for their prefix, and that no later load made good."""
    for number, load in enumerate(rank.state_loads):
        if load.strict or not load.prefixed or load.missing < load.keys:
            continue
        later = rank.state_loads[number + 1 :]
        if not any(each.name == load.name and not each.missing for each in later):
            yield load


def _saved(case: Case, rank: RankEvidence, time: float) -> Iterator[RankPlace]:
    """Where this job saved what the rank had read last, if it did."""
    for read in [f for f in rank.files if f.action == "load" and f.begun < time][-1:]:
        saves = [
            (file.begun, other.rank, file.place)
            for other in case.evidence.ranks
            for file in other.files
            if file.action == "save" and file.path == read.path and other.boot == rank.boot
            if file.begun < read.begun
        ]
        for _, number, place in sorted(saves, key=itemgetter(0))[-1:]:
            name = Path(read.path).name
            yield RankPlace(ranks=(number,), place=place, doing=f"saved {name}")


def _finding(
    ranks: tuple[int, ...],
    place: Place | None,
    cause: str,
    consequences: tuple[str, ...],
    saved: tuple[RankPlace, ...],
) -> Finding:
    return Finding(
        code="DDP508",
        title="module-prefix",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=place, doing="load_state_dict"), *saved),
        cause=cause,
        cure=Cure(text="Save and load the bare model: ddp.module.state_dict()."),
        consequences=consequences,
    )

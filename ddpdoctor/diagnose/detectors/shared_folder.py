"""DDP514: ranks make or clear the same folder or delete the same file, and one fails.

Proven by the order of what they did. That every rank does so is said where those that failed have
done it, or tried to; else one removes what another has yet to come to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, RankEvidence, named

_UNDONE_BY = {"FileExistsError": "mkdir", "FileNotFoundError": "rmtree", "OSError": "rmtree"}
"""What somebody else has done, by what comes of it."""
_SAVES = ("save", "replace")
_QUOTED = re.compile(r"'([^']+)'")


@detector(precedence=250)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that came too late, and the one that had been there."""
    changes = _changes(case) if case.raised else {}
    hit = [(each, *found) for each in case.raised if (found := _clash(changes, each))]
    if not hit:
        return
    case.explain(*(raised for raised, *_ in hit))
    first, other, event = hit[0]
    # Who removed it last cannot blame another, but what it then misses there is of this race, too.
    kind = first.exception.type
    there = [each for each in case.raised if each.exception.type == kind]
    case.explain(*(each for each in there if event.path in _parents(each)))
    ranks = tuple(raised.rank.rank for raised, *_ in hit)
    name = Path(event.path).name
    did = "made" if event.action == "mkdir" else "removed"
    what = "file" if event.action == "unlink" else "folder"
    tried = {(file.action, file.path) for raised, *_ in hit for file in raised.rank.files}
    by_all = (event.action, event.path) in tried
    late = RankPlace(
        ranks=ranks, place=first.exception.place, doing=f"raised {first.exception.type}"
    )
    early = RankPlace(ranks=(other.rank,), place=event.place, doing=f"{event.action}({name})")
    yield Finding(
        code="DDP514",
        title="shared-path-race",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(late, early) if event.action == "mkdir" else (early, late),
        cause=f"rank {other.rank} had {did} the {what} {name} when {named(ranks)} came to it: "
        + ("every rank does so for itself." if by_all else "it had not waited for them."),
        cure=Cure(
            text=f"Make, clear and delete the {what} on rank 0 alone, and let the others wait for "
            "it."
            if by_all
            else f"Let all ranks be done with the {what} (dist.barrier()) before one removes it."
        ),
        evidence=(f"{first.exception.type}: {first.exception.message}",),
        consequences=case.consequences(),
    )


Changes = dict[tuple[str, str], list[tuple[RankEvidence, FileEvent]]]
"""Folders that were made or removed in this run, and files that were saved or deleted, by host
and path."""


def _changes(case: Case) -> Changes:
    found: Changes = {}
    for rank in case.evidence.ranks:
        for file in rank.files:
            if file.action in ("mkdir", "rmtree", "unlink", *_SAVES) and not file.error:
                found.setdefault((rank.boot, file.path), []).append((rank, file))
    return found


def _clash(changes: Changes, raised: Raised) -> tuple[RankEvidence, FileEvent] | None:
    """The rank, and what it did before, that left nothing to make or to find.

    Of those that made a folder it is the first, of those that removed it the last. A folder that
    was made again since is there, but what had been saved in it is not; nor is a file missing that
    was saved again.
    """
    rank, time = raised.rank, raised.exception.time
    action = _UNDONE_BY.get(raised.exception.type)
    # The last one: failures before it were caught, as exist_ok=True does.
    looked = [(f.action, f.path) for f in reversed(rank.files) if f.error and f.action == action]
    if action == "rmtree":
        looked += [("unlink", f.path) for f in rank.files[-1:] if f.error]
    looked += [] if action == "mkdir" else [("rmtree", path) for path in _parents(raised)]
    for wanted, path in looked:
        before = [each for each in changes.get((rank.boot, path), ()) if each[1].begun < time]
        made = max((e.begun for _, e in before if e.action in ("mkdir", *_SAVES)), default=0.0)
        since = min(made, _saved(changes, raised))
        did = [each for each in before if each[1].action == wanted]
        done = [each for each in did if wanted == "mkdir" or each[1].begun > since]
        which = min if action == "mkdir" else max
        found = which(done, key=lambda each: each[1].begun, default=None)
        if found is not None and found[0] is not rank:
            return found
    return None


def _saved(changes: Changes, raised: Raised) -> float:
    """When the file that is missing was saved last; never, if it was not."""
    missing = [f.path for f in raised.rank.files[-1:] if f.error]
    events = [each for path in missing for each in changes.get((raised.rank.boot, path), ())]
    return max((e.begun for _, e in events if e.action in _SAVES), default=float("inf"))


def _parents(raised: Raised) -> list[str]:
    """The folders of the file that could not be opened, written or read."""
    failed = [f.path for f in raised.rank.files[-1:] if f.error]
    failed += [p for p in _QUOTED.findall(raised.exception.message) if p.startswith("/")]
    return [str(parent) for path in failed for parent in Path(path).parents]

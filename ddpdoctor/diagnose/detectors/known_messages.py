"""Failures that are known by their message.

Both of ranks whose exceptions were seen, and of what only a log has: lines without a traceback,
ranks of which nothing else is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, first_line
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.messages import MESSAGES, Message
from ddpdoctor.evidence import ExceptionRecord, Place, named

_NAMED = re.compile(r"[?]P<\w+>|[(][?]s[)]")
_ANY = re.compile("|".join(f"(?:{_NAMED.sub('', message.pattern)})" for message in MESSAGES))


def is_known(line: str) -> bool:
    """Whether a line of text holds one of the messages."""
    return _ANY.search(line) is not None


_AFTER_THE_END = "{} used torch.distributed after the process group had been destroyed."
_LAST = "Destroy the process group last, after all that communicates."


@detector(precedence=315)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each message that is known, on all the ranks that raised it."""
    for message in MESSAGES:
        hit = [each for each in case.raised if _says(message, each)]
        if message.restarted and not case.evidence.attempt:
            continue
        if hit and not (message.on_some and len(hit) == len(case.evidence.ranks)):
            case.explain(*hit)
            yield _finding(case, message, hit)


def _says(message: Message, raised: Raised) -> bool:
    exception = raised.exception
    if _match(message, exception) is None:
        return False
    frames = (f"{frame.file} {frame.function}" for frame in exception.frames)
    return not message.frames or any(re.search(message.frames, frame) for frame in frames)


def _match(message: Message, exception: ExceptionRecord) -> re.Match[str] | None:
    found = re.search(message.pattern, f"{exception.type}: {exception.message}")
    if found is None and message.in_causes and exception.cause is not None:
        return _match(message, exception.cause)
    return found


def _finding(case: Case, message: Message, hit: list[Raised]) -> Finding:
    ranks = tuple(each.rank.rank for each in hit)
    first = min(hit, key=lambda each: (each.exception.time, each.rank.rank)).exception
    match = _match(message, first)
    quoted = [group or "" for group in match.groups()] if match else []
    facts = {name: value or "" for name, value in match.groupdict().items()} if match else {}
    culprits = tuple(map(int, re.findall(r"\d+", quoted[0]))) if message.names_culprits else ()
    places: dict[tuple[Place | None, str], list[int]] = {}
    ways: dict[tuple[Place | None, str], tuple[Place, ...]] = {}
    for each in hit:
        reader = each.exception.reader if message.of_the_reader else None
        key = (reader or each.exception.place, f"raised {each.exception.type}")
        places.setdefault(key, []).append(each.rank.rank)
        if reader is None:
            ways.setdefault(key, each.exception.user)
    for wrapper in hit[0].rank.wrappers[-1:] if message.of_the_wrap else ():
        places[wrapper.place, "wraps the model"] = [*ranks]
    loaders = [each for each in hit[0].rank.loaders if each.trains] or hit[0].rank.loaders
    for loader in loaders[-1:] if message.of_the_loader else ():
        places[loader.place, "builds the loader"] = [*ranks]
    left = [r for each in hit if (r := each.rank).left and r.left < each.exception.time]
    has_ended = message.of_the_end and len(left) == len(hit)
    for rank in left if has_ended else ():
        places.setdefault((rank.left_place, "destroyed the process group"), []).append(rank.rank)
    unseen = [rank.rank for rank in case.evidence.ranks if not rank.pid and message.of_victims]
    elsewhere = f" Nothing was seen of {named(unseen)} from here." if unseen else ""
    return Finding(
        code=message.code,
        title=message.title,
        severity="error",
        certainty="evidence" if unseen else message.certainty,
        ranks=culprits if message.of_victims else ranks,
        places=tuple(
            RankPlace(
                ranks=tuple(who), place=place, doing=doing, stack=ways.get((place, doing), ())
            )
            for (place, doing), who in places.items()
        ),
        cause=_AFTER_THE_END.format(named(ranks))
        if has_ended
        else message.cause.format(*quoted, ranks=named(ranks), **facts) + elsewhere,
        cure=Cure(text=_LAST if has_ended else message.cure.format(*quoted, **facts)),
        evidence=(first_line(f"{first.type}: {first.message}", 200),),
        consequences=case.consequences(),
        raised=f"{first.type}: {first.message}",
    )

"""What a test says, given how each of its ranks ended. No processes, no pytest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from textwrap import shorten
from typing import Literal

from ddpdoctor.evidence import named

Outcome = Literal["passed", "skipped", "xfailed", "failed"]

# What gloo, NCCL and the stores say to a rank whose peer is gone.
_CASUALTY = re.compile(
    r"Connection (closed|reset|refused) by peer"
    r"|Broken pipe"
    r"|Application timeout caused pair closure"
    r"|ncclRemoteError|remote process exit"
    r"|Socket Timeout|wait timeout after",
    re.IGNORECASE,
)
_ORIGIN = re.compile(r"\[\S+\.(cc|cpp|h):\d+\] ")
"""Where in gloo an error comes from: a path on the machine that built torch."""


@dataclass(frozen=True)
class Ending:
    """How the test ended on one rank."""

    rank: int
    outcome: Outcome | Literal["died", "stuck"]
    headline: str = ""
    """One line: the error, the reason of a skip, the signal."""
    details: str = ""
    """The traceback, or what a rank that died had said, or the stack of one that is stuck."""
    time: float = inf
    """When the process ended."""

    @property
    def is_failure(self) -> bool:
        """The test did not hold on this rank, or the rank died of it."""
        return self.outcome in ("failed", "died")

    @property
    def is_casualty(self) -> bool:
        """It failed for want of a peer: a consequence of what happened there."""
        return self.is_failure and bool(_CASUALTY.search(self.headline + self.details))

    def __str__(self) -> str:
        consequence = ", as a consequence" if self.is_casualty else ""
        headline = _ORIGIN.sub("", self.headline)
        said = f": {shorten(headline, 120, placeholder=' ...')}" if headline else ""
        return f"rank {self.rank} {self.outcome}{consequence}{said}"


@dataclass(frozen=True)
class Judgement:
    """What the test says: an outcome, and the text of its report (empty if it passed)."""

    outcome: Outcome
    text: str = ""


def judge(endings: Sequence[Ending], timeout: float, verdict: str = "") -> Judgement:
    """Combine the ranks' endings; `timeout` is the deadline in seconds, for the report.

    `verdict` is what the watch says, which tells of hangs more than the ranks themselves, and of
    what they did wrong without a word.

    The first rank that failed by itself is named: a rank that lost its peer is not to blame, even
    if it ended first, as long as there is another reason for the end of the test.
    """
    failures = sorted((e for e in endings if e.is_failure), key=lambda e: (e.time, e.rank))
    causes = [ending for ending in failures if not ending.is_casualty]
    if causes:
        return Judgement("failed", _failure(causes[0], endings))
    outcomes: tuple[Outcome, ...] = ("xfailed", "skipped")
    for outcome in outcomes:
        if early := [ending for ending in endings if ending.outcome == outcome]:
            return Judgement(outcome, f"rank {early[0].rank}: {early[0].headline}")
    if failures:
        return Judgement("failed", _failure(failures[0], endings, verdict))
    if any(ending.outcome == "stuck" for ending in endings):
        return Judgement("failed", _deadline(endings, timeout, verdict))
    if verdict:
        return Judgement("failed", f"{verdict}\n\n{_list(endings)}")
    return Judgement("passed")


def _failure(culprit: Ending, endings: Sequence[Ending], verdict: str = "") -> str:
    others = [ending for ending in endings if ending is not culprit]
    parts = [f"{_named(culprit, endings)}: {culprit.headline}", culprit.details, verdict]
    if others:
        parts.append("The other ranks:\n" + _list(others))
    return "\n\n".join(part for part in (*parts, *_stacks(others)) if part)


def _deadline(endings: Sequence[Ending], timeout: float, verdict: str) -> str:
    stuck = [ending.rank for ending in endings if ending.outcome == "stuck"]
    first = verdict or f"not over after {timeout:g} s on {named(stuck)} (of {_all(endings)})"
    return "\n\n".join([first, _list(endings), *_stacks(endings)])


def _named(ending: Ending, endings: Sequence[Ending]) -> str:
    """A rank among those that there are, which are counted from 0."""
    return f"rank {ending.rank} (of {_all(endings)})"


def _all(endings: Sequence[Ending]) -> str:
    return f"0-{len(endings) - 1}" if len(endings) > 1 else "0"


def _list(endings: Sequence[Ending]) -> str:
    return "\n".join(f"  {ending}" for ending in endings)


def _stacks(endings: Sequence[Ending]) -> list[str]:
    return [
        f"Where rank {ending.rank} was stuck:\n{ending.details}"
        for ending in endings
        if ending.outcome == "stuck"
    ]
